/** The looks at the store take one part in so many of the time at most, */
const SHARE = 5;
/** and are no further apart than this, ms: the process may have stood still during a look, for any time. */
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
