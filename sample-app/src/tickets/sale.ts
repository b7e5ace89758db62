/** What is on sale, and how. Times are milliseconds. */
export class Sale {
  readonly show: string = 'tonight';
  readonly seats: number = 100;
  /** How long a payment takes: the gap in which another buyer can read the same number of sold seats. */
  readonly paymentTime: number = Number(process.env.PAYMENT_TIME ?? 60);
}
