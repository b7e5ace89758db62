import { setTimeout as sleep } from 'node:timers/promises';

/** ms on a clock that all processes of this machine share, and that nobody sets. */
export const now = () => Number(process.hrtime.bigint()) / 1e6;

/** Sleeps most of the time and spins the rest, so that all processes start within microseconds. */
export async function until(moment) {
  const left = moment - now();
  if (left > 2) await sleep(left - 2);
  while (now() < moment);
}
