import type { HoldRecord } from '../support/worker.js';

/** ms on the clock that the records of all processes are in. */
export const now = (): number => Number(process.hrtime.bigint()) / 1e6;

const byGrant = (records: readonly HoldRecord[]) => records.toSorted((a, b) => a.granted - b.granted);

/**
 * The pairs of holds that went on at the same time, which a lock must never allow. A record begins after its grant
 * and ends before its release, so that none is found where there was none.
 */
export function overlaps(records: readonly HoldRecord[]): [HoldRecord, HoldRecord][] {
  const found: [HoldRecord, HoldRecord][] = [];
  let longest: HoldRecord | undefined;
  for (const record of byGrant(records)) {
    if (longest !== undefined && record.granted < longest.released) found.push([longest, record]);
    if (longest === undefined || record.released > longest.released) longest = record;
  }
  return found;
}

/** The longest time, in ms, that the lock was free while somebody waited for it. */
export function longestGap(records: readonly HoldRecord[]): number {
  let longest = 0;
  let free = -Infinity;
  const inOrder = byGrant(records);
  inOrder.forEach(({ granted, released }, index) => {
    const asked = Math.min(...inOrder.slice(index).map(({ invoked }) => invoked));
    longest = Math.max(longest, granted - Math.max(free, asked));
    free = Math.max(free, released);
  });
  return longest;
}

/** Whether each holder got a greater fencing token than all before it. */
export const tokensGrow = (records: readonly HoldRecord[]): boolean =>
  byGrant(records).every(
    ({ fencingToken }, index, all) => index === 0 || fencingToken > all[index - 1]!.fencingToken,
  );
