import { type ClockReading, quorumOf } from './member.js';

/**
 * By how many ms a member's clock is ahead of the right time, which is also the most by which it may have been set forward
 * during the member's present run. The right time is that of a majority of the members that have reported (see
 * {@link middleOf}), or that of this process where its clock is behind: the process trusts its own clock only where that
 * makes a member younger.
 * @param own this process's clock in the same form
 * @param told the clocks of all members that have reported
 * @param members the number of members
 * @returns undefined while too few members have reported
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

/** The clock that a majority follows, in the same form; undefined while too few members have reported. */
export function middleOf(told: readonly ClockReading[], members: number): number | undefined {
  if (told.length < quorumOf(members)) return undefined;
  const clocks = told.map(({ least }) => least).sort((a, b) => a - b);
  // For an even number of clocks: the earlier one of the two in the middle.
  return clocks[Math.ceil(clocks.length / 2) - 1];
}
