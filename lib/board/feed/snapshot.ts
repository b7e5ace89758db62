import { keeperOf } from '../../api/lock-state.js';
import type { LockClient } from '../../client/lock-client.js';
import type { LocalWaits } from '../../client/waiting/local-callers.js';
import { now } from '../../client/holding/deadline.js';
import { LockList, type SeenLock } from '../../locks/listing/lock-list.js';
import type { ServiceState } from '../../module/service-state.js';
import { oncePer } from '../once-per.js';
import { Slices } from './slices.js';
import { RENEWED_SHARE, type BoardHolder, type BoardLock } from './wire.js';

/** The locks of one look at the store. */
export interface Snapshot {
  readonly at: number;
  readonly locks: ReadonlyMap<string, BoardLock>;
  /** By owner and lock: each hold has an owner of its own. */
  readonly holds: ReadonlyMap<string, SeenHold>;
  /** There are more locks than are shown. */
  readonly more: boolean;
}

export interface SeenHold {
  readonly name: string;
  readonly holder: BoardHolder;
}

const PAGE = 1_000;
/** Of so many waiters of a lock the labels are told. */
const MOST_WAITERS = 20;
/** ms by which the answers of two looks, and two clocks, may differ. */
const SLACK = 1_000;
/** Two looks at one moment differ by the time that the answers took, ms. */
const TOLERANCE = 500;

/**
 * @param before the look before
 * @param groupOf the group of the lock with this name
 */
export async function takeSnapshot(
  { client, settings }: ServiceState,
  limit: number,
  before: Snapshot | undefined,
  groupOf: (name: string) => string,
): Promise<Snapshot> {
  const list = new LockList(client);
  const seen = new Map<string, SeenLock>();
  let cursor: string | null | undefined;
  do {
    // One more than is shown tells whether there are more.
    const page = await list.seen({
      limit: Math.min(PAGE, limit + 1 - seen.size),
      cursor: cursor ?? undefined,
    });
    for (const lock of page.locks) seen.set(lock.name, lock);
    cursor = page.cursor;
  } while (cursor !== null && seen.size <= limit);
  const at = Date.now();
  const local = client.callers.waits();
  const locks = new Map<string, BoardLock>();
  const holds = new Map<string, SeenHold>();
  const shown = [...seen.values()].slice(0, limit);
  const waited = shown.filter(({ name, queue }) => queue.length > 0 || local.has(name));
  const told = waited.map(async (lock) => [lock.name, await waitersOf(lock, client, local)] as const);
  const waiters = new Map(await Promise.all(told));
  const slices = new Slices();
  for (const lock of shown) {
    await slices.next();
    const { name, kind, fencingToken: token } = lock;
    const holders = lock.holders.map(({ owner, ...hold }) => {
      // A lock that is kept after its release still has the hold that was released.
      const key = `${keeperOf(owner)} ${name}`;
      const holder = holderOf(hold, before?.holds.get(key)?.holder, settings.leaseTime, at);
      holds.set(key, { name, holder });
      return holder;
    });
    const former = before?.locks.get(name);
    const wait = waitOf(lock, local.get(name), former, at);
    const present: BoardLock = {
      ...{ name, kind, group: groupOf(name), holders, token, ...wait },
      waiters: waiters.get(name) ?? [],
    };
    // The same object if nothing has changed, so that a difference between two looks costs no more than the locks in it.
    locks.set(name, former && textOf(former) === textOf(present) ? former : present);
  }
  return { at, locks, holds, more: seen.size > limit };
}

const textOf = oncePer((lock: BoardLock) => JSON.stringify(lock));

/** The processes that wait. The callers of this process may do so without a place in the queue. */
async function waitersOf(
  { name, queue }: SeenLock,
  { labels, options }: LockClient,
  local: ReadonlyMap<string, LocalWaits>,
): Promise<readonly string[]> {
  const found = await Promise.all(queue.slice(0, MOST_WAITERS).map((owner) => labels.find(owner)));
  return [
    ...new Set([...(local.has(name) ? [options.label] : []), ...found.flatMap((label) => label ?? [])]),
  ];
}

/**
 * The callers of this process that wait for a plain lock have one place in its queue together, or none if the lock goes from one
 * to the next. They count if they are more, or have waited for longer.
 */
function waitOf(
  lock: SeenLock,
  local: LocalWaits | undefined,
  former: BoardLock | undefined,
  at: number,
): Pick<BoardLock, 'waiting' | 'waitingSince' | 'passed'> {
  const waiting = Math.max(lock.waiting, local?.waiting ?? 0);
  const since = Math.min(lock.waitedSince, local === undefined ? Infinity : at - (now() - local.since));
  if (since === Infinity) return { waiting, waitingSince: null, passed: 0 };
  const waitingSince = steady(Math.round(since), former?.waitingSince);
  const isSameWait = waitingSince === former?.waitingSince;
  // Tokens are times, so a greater one shows at least one grant. A lock without a holder shows none.
  const isPassedBy = isSameWait && former.token > 0 && lock.fencingToken > former.token;
  return { waiting, waitingSince, passed: isSameWait ? former.passed + Number(isPassedBy) : 0 };
}

function holderOf(
  hold: Omit<SeenLock['holders'][number], 'owner'>,
  former: BoardHolder | undefined,
  leaseTime: number,
  at: number,
): BoardHolder {
  // If several owners share a lock, the store knows only the start of the last one.
  const since = hold.since === undefined ? (former?.since ?? null) : steady(hold.since, former?.since);
  const until = hold.until === Infinity ? null : steady(hold.until, former?.until);
  const left = until === null ? Infinity : until - at;
  const isRenewed = until !== null && former !== undefined && until > (former.until ?? until);
  const lease = isRenewed ? left : (former?.lease ?? null);
  // Before a renewal has been seen, a lease is taken for one of the length that this process gives.
  const span = lease ?? leaseTime;
  const whole = since === null || until === null ? Infinity : until - since;
  const isOther = lease === null && (left > span + SLACK || whole < span - SLACK);
  const fixed = until !== null && (isOther || left < span * RENEWED_SHARE - SLACK);
  return { label: hold.label, since, until, lease, fixed };
}

/** The moment of the look before, if it is the same one: an unchanged lock is not sent again. */
const steady = (moment: number, former: number | null | undefined): number =>
  typeof former === 'number' && Math.abs(moment - former) <= TOLERANCE ? former : moment;
