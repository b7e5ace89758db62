/** How many minutes are kept. */
export const MINUTES = 5;
/** Each bucket ends a quarter later than the one before: 100 of them go from 1 ms to weeks. */
const RATIO = Math.log(1.25);
const BUCKETS = 100;

/** How long things took in the last minutes, as counts: the memory is the same for any number of them. */
export class Durations {
  private readonly counts = new Uint32Array(MINUTES * BUCKETS);
  private minute = 0;

  /** @param at ms of a clock that never goes back */
  add(duration: number, at: number): void {
    this.turnTo(at);
    const bucket = Math.min(BUCKETS - 1, Math.ceil(Math.log(Math.max(1, duration)) / RATIO));
    const index = (this.minute % MINUTES) * BUCKETS + bucket;
    this.counts[index] = (this.counts[index] ?? 0) + 1;
  }

  /** How many there are, with p50 and p99 in ms, as exact as a bucket. */
  summary(at: number): { readonly count: number; readonly times: readonly [number, number] } {
    this.turnTo(at);
    const sums = Array.from({ length: BUCKETS }, () => 0);
    this.counts.forEach((count, index) => (sums[index % BUCKETS] = (sums[index % BUCKETS] ?? 0) + count));
    const count = sums.reduce((all, sum) => all + sum);
    const timeAt = (share: number) => {
      let left = share * count;
      return Math.round(Math.exp((sums.findIndex((sum) => (left -= sum) <= 0) - 0.5) * RATIO));
    };
    return { count, times: [timeAt(0.5), timeAt(0.99)] };
  }

  /** Forgets the minutes that have become too old. */
  private turnTo(at: number): void {
    const minute = Math.floor(at / 60_000);
    while (this.minute < minute) {
      this.minute = Math.max(this.minute + 1, minute - MINUTES + 1);
      const from = (this.minute % MINUTES) * BUCKETS;
      this.counts.fill(0, from, from + BUCKETS);
    }
  }
}
