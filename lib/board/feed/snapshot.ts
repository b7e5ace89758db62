import type { LockSummary } from '../../api/lock-summary.js';
import type { LockService } from '../../module/lock-service.js';
import { stateOf } from '../../module/service-state.js';
import { pairsOf, steady } from './difference.js';
import { RENEWED_SHARE, type BoardHolder, type BoardLock } from './wire.js';

/** The locks of one look at the store. */
export interface Snapshot {
  readonly at: number;
  readonly locks: ReadonlyMap<string, BoardLock>;
  readonly more: boolean;
}

const PAGE = 1_000;
/** ms by which the answers of two looks, and two clocks, may differ. */
const SLACK = 1_000;

/**
 * @param before the look before
 * @param groupOf the group of the lock with this name
 */
export async function takeSnapshot(
  service: LockService,
  limit: number,
  before: Snapshot | undefined,
  groupOf: (name: string) => string,
): Promise<Snapshot> {
  const locks = new Map<string, BoardLock>();
  let cursor: string | null | undefined;
  do {
    // One more than is shown tells whether there are more.
    const most = Math.min(PAGE, limit + 1 - locks.size);
    const page = await service.list({ limit: most, cursor: cursor ?? undefined });
    const at = Date.now();
    for (const summary of page.locks) {
      const { name } = summary;
      const lock = lockOf(summary, groupOf(name), service, at);
      locks.set(name, steadyLock(lock, before?.locks.get(name) ?? lock, leaseTimeOf(service), at));
    }
    cursor = page.cursor;
  } while (cursor !== null && locks.size <= limit);
  const beyond = [...locks.keys()].slice(limit);
  for (const name of beyond) locks.delete(name);
  return { at: Date.now(), locks, more: beyond.length > 0 };
}

const leaseTimeOf = (service: LockService): number => stateOf(service)?.settings.leaseTime ?? 30_000;

/**
 * The callers of this process that wait for a plain lock have one place in its queue together, or none if the lock goes from one
 * to the next. They count if they are more, or have waited for longer.
 */
function lockOf(
  { name, kind, holders, waiting, longestWait }: LockSummary,
  group: string,
  service: LockService,
  at: number,
): BoardLock {
  const state = stateOf(service);
  const wait = Math.max(longestWait ?? -1, state?.longestWait(name) ?? -1);
  return {
    ...{ name, kind, group, passed: 0 },
    holders: holders.map(({ label, since, remaining }) => ({
      ...{ label, lease: null, fixed: false },
      since: Number.isNaN(since) ? null : at - since,
      until: remaining === Infinity ? null : at + remaining,
    })),
    token: holders[0]?.fencingToken ?? 0,
    waiting: Math.max(waiting, state?.waitingFor(name) ?? 0),
    waitingSince: wait < 0 ? null : Math.round(at - wait),
  };
}

/** The lock with the moments of the look before, if they are the same ones: an unchanged lock is not sent again. */
function steadyLock(lock: BoardLock, former: BoardLock, leaseTime: number, at: number): BoardLock {
  const pairs = pairsOf(former, lock);
  const waitingSince = steady(lock.waitingSince, former.waitingSince);
  const isSameWait = waitingSince !== null && waitingSince === former.waitingSince;
  // Tokens are times, so a greater one shows at least one grant. A lock without a holder shows none.
  const isPassedBy = former.token > 0 && lock.token > former.token;
  const passed = isSameWait ? former.passed + Number(isPassedBy) : 0;
  const holders = lock.holders.map((holder) =>
    steadyHolder(holder, pairs.get(holder) ?? holder, leaseTime, at),
  );
  return { ...lock, holders, waitingSince, passed };
}

function steadyHolder(holder: BoardHolder, former: BoardHolder, leaseTime: number, at: number): BoardHolder {
  const until = steady(holder.until, former.until);
  const since = steady(holder.since ?? former.since, former.since);
  const left = until === null ? Infinity : until - at;
  const lease = until !== null && former.until !== null && until > former.until ? left : former.lease;
  // Before a renewal has been seen, a lease is taken for one of the length that this process gives.
  const span = lease ?? leaseTime;
  const whole = since === null || until === null ? Infinity : until - since;
  const isOther = lease === null && (left > span + SLACK || whole < span - SLACK);
  const fixed = until !== null && (isOther || left < span * RENEWED_SHARE - SLACK);
  return { label: holder.label, since, until, lease, fixed };
}
