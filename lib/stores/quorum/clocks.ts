import { quorumOf } from './member.js';

/** A wall clock, by how many ms it is ahead of this process's monotonic clock: not exactly, for an answer takes its time. */
export interface ClockReading {
  readonly least: number;
  readonly most: number;
}

/**
 * By how much a member's clock is ahead of the right time, ms, and so by how much it may have been set forward at most while
 * its present run went on. The right time is what a majority of the members that have told go by, or this process where it
 * is behind them: its own clock is only believed where that makes a member younger.
 * @param own this process's clock in the same way
 * @param told by all members that have told the time
 * @param members how many there are
 * @returns undefined while too few have told
 */
export function aheadOf(
  clock: ClockReading,
  own: number,
  told: readonly ClockReading[],
  members: number,
): number | undefined {
  const middle = middleOf(told, members);
  return middle === undefined ? undefined : Math.max(0, clock.most - Math.min(middle, own));
}

/** What a majority goes by, in the same way; undefined while too few have told. */
export function middleOf(told: readonly ClockReading[], members: number): number | undefined {
  if (told.length < quorumOf(members)) return undefined;
  const clocks = told.map(({ least }) => least).sort((a, b) => a - b);
  // Of an even number the earlier one of the two in the middle.
  return clocks[Math.ceil(clocks.length / 2) - 1];
}
