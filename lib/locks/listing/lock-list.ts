import type { ListedName, LockClient, StoreListing } from '../../client/lock-client.js';
import { answerWithin } from '../../client/waiting/answer-within.js';
import { assertKnownOptions, assertSignal } from '../../client/validation.js';
import { LockConfigError } from '../../api/errors.js';
import { isLockKindMismatchError } from '../../api/error-guards.js';
import { cureOf } from '../../api/duration.js';
import { wallTime } from '../../runtime/runtime.js';
import { livingPart } from './inspection.js';
import type { LockSummary, ListOptions, LockPage } from '../../api/lock-summary.js';
import { decodeCursor, encodeCursor, type ListPosition } from './list-cursor.js';

const OPTIONS = ['prefix', 'state', 'limit', 'cursor', 'signal'] as const;
const LIMIT = 100;
const MOST = 1_000;
const FIRST: ListPosition = { at: undefined, after: '', to: undefined };
/** Locks that are read in parallel. */
const AT_ONCE = 64;

/** Lists the locks of a store: the store returns names, and each name is inspected. */
export class LockList {
  constructor(private readonly client: LockClient) {}

  /** @throws LockConfigError for a wrong option, or if the store cannot list */
  async page(options: ListOptions = {}): Promise<LockPage> {
    const { locks, cursor } = await this.seen(options);
    // One moment for the whole page, so that the ages show the order of events.
    const time = wallTime();
    return { locks: locks.map((lock) => summaryOf(lock, time)), cursor };
  }

  /** As `page`, with owners and with moments in place of times. */
  async seen(options: ListOptions): Promise<SeenPage> {
    assertKnownOptions(options, OPTIONS, 'list');
    const { prefix = '', state, limit = LIMIT, cursor, signal } = options;
    assertText('prefix', prefix);
    assertState(state);
    assertLimit(limit);
    assertSignal(signal);
    const { listing } = this.client.store;
    if (listing === undefined) {
      throw new LockConfigError(
        this.client.options.location,
        'cannot list its locks: its store has no listing',
      );
    }
    const reading = this.read(listing, { prefix, state, limit, cursor });
    return await answerWithin(reading, prefix, { signal });
  }

  private async read(
    listing: StoreListing,
    {
      prefix,
      state,
      limit,
      cursor,
    }: Omit<ListOptions, 'limit' | 'prefix'> & { prefix: string; limit: number },
  ): Promise<SeenPage> {
    const locks: SeenLock[] = [];
    const page = (cursor: string | null): SeenPage => ({ locks, cursor });
    let { at, after, to } = cursor === undefined ? FIRST : decodeCursor(cursor);
    for (;;) {
      const reply = await listing.names({ prefix, cursor: at });
      const isSameStep = reply.cursor === to;
      const names = inOrder(reply.names).filter(({ name }) => !isSameStep || name > after);
      for (let from = 0; from < names.length; from += AT_ONCE) {
        const part = names.slice(from, from + AT_ONCE);
        const found = await Promise.all(part.map((listed) => this.look(listed)));
        for (const [n, lock] of found.entries()) {
          if (lock === undefined || !isWanted(lock, state)) continue;
          locks.push(lock);
          if (locks.length < limit) continue;
          const isLast = from + n === names.length - 1;
          const { step = at, cursor: to } = reply;
          if (!isLast) return page(encodeCursor({ at: step, after: part[n]?.name ?? '', to }));
          return page(reply.cursor === undefined ? null : encodeCursor({ ...FIRST, at: reply.cursor }));
        }
      }
      if (reply.cursor === undefined) return page(null);
      ({ at, after, to } = { ...FIRST, at: reply.cursor });
    }
  }

  /** Undefined if the name is not a lock, or not any more. */
  private async look({ name, isQueue }: ListedName): Promise<SeenLock | undefined> {
    const { store, labels } = this.client;
    const stored = await store.inspect(name).catch((error: unknown) => {
      if (isLockKindMismatchError(error)) return null;
      throw error;
    });
    const readAt = wallTime();
    const living = livingPart(this.client, name, stored);
    // A held lock has a listing of its own.
    if (living === undefined || (isQueue && living.holders.length > 0)) return undefined;
    const { kind, listeners, queue, fencingToken = 0 } = living;
    const holders = living.holders.map(async ({ owner, since, remainingTime }) => ({
      owner,
      label: (await labels.find(owner)) ?? owner,
      since,
      until: readAt + remainingTime,
    }));
    return {
      name,
      kind,
      fencingToken,
      holders: await Promise.all(holders),
      waiting: queue.length + (kind === 'lock' ? listeners : 0),
      queue: queue.map(({ owner }) => owner),
      waitedSince: queue.reduce((least, { since }) => Math.min(least, since), Infinity),
    };
  }
}

interface SeenPage {
  readonly locks: readonly SeenLock[];
  readonly cursor: string | null;
}

/** A lock as the store has it, with moments in ms since the epoch. */
export interface SeenLock extends Pick<LockSummary, 'name' | 'kind' | 'waiting'> {
  /** The last token; 0 if none is known. */
  readonly fencingToken: number;
  readonly holders: readonly {
    readonly owner: string;
    /** The label of its instance; the owner if the label is not known. */
    readonly label: string;
    /** Undefined if the store does not know it. */
    readonly since: number | undefined;
    /** Infinity if the hold has no end. */
    readonly until: number;
  }[];
  /** The owners in the queue, in its order. */
  readonly queue: readonly string[];
  /** Infinity if the queue is empty. */
  readonly waitedSince: number;
}

function summaryOf(
  { name, kind, holders, fencingToken, waiting, waitedSince }: SeenLock,
  time: number,
): LockSummary {
  const from = (moment: number) => Math.max(0, Math.round(time - moment));
  return {
    name,
    kind,
    holders: holders.map(({ label, since, until }) => ({
      label,
      since: since === undefined ? NaN : from(since),
      remaining: Math.max(0, until - time),
      fencingToken,
    })),
    waiting,
    longestWait: waitedSince === Infinity ? null : from(waitedSince),
  };
}

const isWanted = ({ holders, waiting }: SeenLock, state: ListOptions['state']): boolean =>
  state === undefined || (state === 'held' ? holders.length > 0 : waiting > 0);

/** Sorted by name. A name that the store lists twice in one step is one lock. */
function inOrder(names: readonly ListedName[]): readonly ListedName[] {
  const byName = new Map<string, ListedName>();
  for (const listed of names) {
    if (!listed.isQueue || !byName.has(listed.name)) byName.set(listed.name, listed);
  }
  return [...byName.values()].sort((a, b) => (a.name > b.name ? 1 : -1));
}

function assertText(option: string, value: unknown): void {
  if (typeof value === 'string') return;
  throw new LockConfigError(option, 'must be a text', { value });
}

function assertState(value: unknown): void {
  if (value === undefined || value === 'held' || value === 'waited') return;
  throw new LockConfigError('state', "must be 'held' or 'waited'", { value });
}

function assertLimit(value: unknown): void {
  if (Number.isSafeInteger(value) && (value as number) >= 1 && (value as number) <= MOST) return;
  const rule = `must be a whole number from 1 to ${String(MOST)}${cureOf(value)}`;
  throw new LockConfigError('limit', rule, { value });
}
