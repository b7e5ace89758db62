import type { Turn } from './jvm-thread.js';

/** The turns of the callers of one process. */
export type Process = readonly (readonly Turn[])[];

/** What a process got of a lock. */
export interface Share {
  turns: number;
  /** Turns in a row that no other process has come between count as one. */
  visits: number;
  /** ms */
  longestWait: number;
}

export const turnsOf = (processes: readonly Process[]): Turn[] => processes.flat(2);

const byGrant = ([, one]: Turn, [, other]: Turn) => one - other;

export function sharesOf(processes: readonly Process[]): Share[] {
  const shares = processes.map(() => ({ turns: 0, visits: 0, longestWait: 0 }));
  const owners = new Map(
    processes.flatMap((process, index) => process.flat().map((turn) => [turn, shares[index]!])),
  );
  let last: Share | undefined;
  for (const turn of turnsOf(processes).sort(byGrant)) {
    const share = owners.get(turn)!;
    share.turns++;
    if (share !== last) share.visits++;
    share.longestWait = Math.max(share.longestWait, turn[1] - turn[0]);
    last = share;
  }
  return shares;
}

/** Pairs of turns that went on at the same time. */
export function overlapping(processes: readonly Process[]): [Turn, Turn][] {
  const inOrder = turnsOf(processes).sort(byGrant);
  return inOrder.flatMap((turn, index) => {
    const before = inOrder[index - 1];
    return before !== undefined && turn[1] < before[2] ? [[before, turn] as [Turn, Turn]] : [];
  });
}

export const mean = (shares: readonly Share[], figure: keyof Share): number =>
  shares.reduce((sum, share) => sum + share[figure], 0) / shares.length;

export const most = (shares: readonly Share[], figure: keyof Share): number =>
  Math.max(...shares.map((share) => share[figure]));
