import type { LockService } from '../../module/lock-service.js';
import { stateOf } from '../../module/service-state.js';
import type { LockSummary } from '../../api/lock-summary.js';
import type { BoardHolder, BoardLock } from '../view/wire.js';
import { pairsOf, steady } from './pairs.js';

/** The locks of one look at the store. */
export interface Snapshot {
  readonly at: number;
  readonly locks: ReadonlyMap<string, BoardLock>;
  readonly more: boolean;
}

/** A hold that has been prolonged since the look before has so many ms less than its lease at most. */
const RENEWED_WITHIN = 1_500;

const PAGE = 1_000;

/** @param before the look before */
export async function takeSnapshot(
  service: LockService,
  limit: number,
  before: Snapshot | undefined,
  leaseTime: number,
): Promise<Snapshot> {
  const locks = new Map<string, BoardLock>();
  let cursor: string | null | undefined;
  do {
    const page = await service.list({
      // One more than is shown tells whether there are more.
      limit: Math.min(PAGE, limit + 1 - locks.size),
      cursor: cursor ?? undefined,
    });
    const at = Date.now();
    for (const summary of page.locks) {
      const former = before?.locks.get(summary.name);
      const lock = lockOf(summary, at, leaseTime);
      locks.set(summary.name, steadyLock(withCallersHere(lock, service, at), former, at));
    }
    cursor = page.cursor;
  } while (cursor !== null && locks.size <= limit);
  const beyond = [...locks.keys()].slice(limit);
  for (const name of beyond) locks.delete(name);
  return { at: Date.now(), locks, more: beyond.length > 0 };
}

function lockOf(
  { name, kind, holders, waiting, longestWait }: LockSummary,
  at: number,
  leaseTime: number,
): BoardLock {
  return {
    name,
    kind,
    holders: holders.map(({ label, since, remaining }) => ({
      label,
      since: Number.isNaN(since) ? null : at - since,
      until: remaining === Infinity ? null : at + remaining,
      lease: remaining === Infinity ? null : firstLease(remaining, since, leaseTime),
    })),
    token: holders[0]?.fencingToken ?? 0,
    waiting,
    waitingSince: longestWait === null ? null : at - longestWait,
  };
}

/**
 * The callers of this process that wait for a plain lock have one place in its queue together, or none if the lock goes from one
 * to the next. They count if they are more, or have waited for longer.
 */
function withCallersHere(lock: BoardLock, service: LockService, at: number): BoardLock {
  const state = stateOf(service);
  const waited = state?.longestWait(lock.name);
  if (state === undefined || waited === undefined) return lock;
  return {
    ...lock,
    waiting: Math.max(lock.waiting, state.waitingFor(lock.name)),
    waitingSince: Math.min(lock.waitingSince ?? Infinity, Math.round(at - waited)),
  };
}

/**
 * How long the lease of a hold is, as far as one look can tell: for one that has been renewed the lease time of this process, for
 * one that cannot have been the time since it began and the time that is left.
 */
function firstLease(remaining: number, since: number, leaseTime: number): number {
  const whole = Number.isNaN(since) ? remaining : since + remaining;
  return Math.max(remaining, Math.min(whole, leaseTime));
}

/** The lock with the moments of the look before, if they are the same ones: an unchanged lock is not sent again. */
function steadyLock(lock: BoardLock, former: BoardLock | undefined, at: number): BoardLock {
  if (former === undefined) return lock;
  const pairs = pairsOf(former, lock);
  const holders = lock.holders.map((holder) => {
    const before = pairs.get(holder);
    return before === undefined ? holder : steadyHolder(holder, before, at);
  });
  return { ...lock, holders, waitingSince: steady(lock.waitingSince, former.waitingSince) };
}

function steadyHolder(holder: BoardHolder, former: BoardHolder, at: number): BoardHolder {
  const until = steady(holder.until, former.until);
  // A hold that was prolonged shows its whole lease.
  const isRenewed = until !== null && former.until !== null && until > former.until;
  const lease = holder.lease === null || former.lease === null ? holder.lease : former.lease;
  const left = until === null ? 0 : until - at;
  return {
    label: holder.label,
    since: steady(holder.since ?? former.since, former.since),
    until,
    lease: isRenewed && lease !== null ? Math.max(left, Math.min(lease, left + RENEWED_WITHIN)) : lease,
  };
}
