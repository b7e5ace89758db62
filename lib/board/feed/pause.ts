/** Looks at the store take at most 1 / SHARE of the time. */
const SHARE = 5;
/** Longest pause between two looks, ms. The measured time of a look may include a freeze of the process of any length. */
const LONGEST = 20_000;

/**
 * The time from the end of a look at the store to the next one, ms.
 * @param spent ms that the look took
 * @param interval ms from the beginning of a look to the next one, if the store answers quickly
 */
export function pauseAfter(spent: number, interval: number, hasFailed: boolean): number {
  const rest = hasFailed ? interval : Math.min((SHARE - 1) * spent, LONGEST);
  return Math.max(interval - spent, rest);
}
