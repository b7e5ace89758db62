import type { BoardHolder, BoardLock } from '../view/wire.js';

/** Two looks at one moment differ by the time that the answers took, ms. */
const TOLERANCE = 500;

/** The moment of the look before, if it is the same one. */
export const steady = (moment: number | null, former: number | null): number | null =>
  moment !== null && former !== null && Math.abs(moment - former) <= TOLERANCE ? former : moment;

const isNear = (one: number | null, other: number | null): boolean =>
  one !== null && other !== null && Math.abs(one - other) <= TOLERANCE;

/**
 * The holders that two looks at a lock have both seen, the later one first. A hold has no name of its own, and its data
 * change: its label is found after a while, and if several owners share a lock, the store knows only the start of the last
 * one.
 */
export function pairsOf(former: BoardLock, lock: BoardLock): Map<BoardHolder, BoardHolder> {
  const pairs = new Map<BoardHolder, BoardHolder>();
  const left = new Set(former.holders);
  const isSameGrant = former.token === lock.token;
  const pass = (isSame: (after: BoardHolder, before: BoardHolder) => boolean) => {
    for (const after of lock.holders) {
      if (pairs.has(after)) continue;
      const before = [...left].find((one) => isSame(after, one));
      if (before === undefined) continue;
      pairs.set(after, before);
      left.delete(before);
    }
  };
  pass((after, before) => isNear(after.since, before.since) && (isSameGrant || after.label === before.label));
  const isShared = lock.holders.length > 1 || former.holders.length > 1 || isSharing(lock);
  if (!isShared && !isSameGrant) return pairs;
  const isUnknown = (after: BoardHolder, before: BoardHolder) =>
    after.since === null || before.since === null;
  pass((after, before) => isUnknown(after, before) && after.label === before.label);
  pass((after, before) => isUnknown(after, before) && isNear(after.until, before.until));
  return pairs;
}

const isSharing = ({ kind }: BoardLock): boolean => kind === 'semaphore' || kind === 'read-write';
