import type { Asker } from '../../api/asker.js';
import { isKept, keptFor } from '../../api/lock-state.js';
import type {
  AcquireReply,
  AcquireRequest,
  HandOverReply,
  HoldState,
  NextOwner,
  QueueTerms,
  ReleaseRequest,
  TransferRequest,
} from '../../store/lock-store.js';
import { type MemoryHold, MemoryHolders } from './memory-holders.js';
import { clientOf, lookAfter, MemoryQueue, type Mode, type QueueEntry } from './memory-queue.js';
import { CLAIM, type QueueMessage, type Rivals } from '../../store/queue-messages.js';
import { now } from '../../runtime/clock.js';
import { random, wallTime } from '../../runtime/runtime.js';

/** How long the head of a plain lock's queue leaves the lock to the waiters outside of the queue, ms. */
const LEFT_TO_OUTSIDERS = 10;
/** About how many turns the waiters outside of the queue have in a row. */
const TURNS_IN_A_ROW = 2;

/** The request for a plain lock without an entry in its queue. */
const PLAIN_REQUEST = { mode: 'exclusive', entry: undefined, ownWriteHold: undefined } as const;

/** The services of the store for a lock. */
export interface LockSurroundings {
  nextToken(least?: number): number;
  microseconds(): number;
  /** False when the owner's client does not subscribe to the queue. */
  tell(owner: string, message: QueueMessage): boolean;
  /** How many subscribe to the releases of a plain lock: waiters without an entry, and the first of the queue if it does. */
  outsiders(): number;
  tellOutsiders(): void;
}

/**
 * A lock of any kind, with holders that have a deadline each, and waiters in the order of their arrival, as in the Redis
 * scripts.
 */
export class MemoryLock {
  readonly holders = new MemoryHolders();
  readonly queue = new MemoryQueue();
  /** The last token given out. */
  fencingToken: number | undefined;

  constructor(
    readonly kind: QueueTerms['kind'],
    readonly capacity: number,
    private readonly around: LockSurroundings,
  ) {}

  get isOver(): boolean {
    this.holders.dropExpired();
    return this.holders.size === 0 && this.queue.length === 0;
  }

  /** Lets in the waiters that may enter now, and removes the dead ones. Returns whether the lock is in use after that. */
  settle(): boolean {
    if (!this.isOver) this.advance();
    return !this.isOver;
  }

  enter({ owner, leaseTime, queue, leastToken }: AcquireRequest): AcquireReply {
    const { mode, entry, ownWriteHold } = queue ?? PLAIN_REQUEST;
    this.holders.dropExpired();
    const mine = this.holders.get(owner);
    const isPlain = this.kind === 'lock';
    if (mine !== undefined && !isPlain) return this.confirm(owner, mine, leaseTime);

    const { first } = this.queue;
    const isBehind = !isPlain && first !== undefined && first.owner !== owner;
    // A waiter ahead that may not enter, and is all that keeps this owner out, has to be alive.
    if (isBehind && (this.admits(first.mode) || this.admits(mode, ownWriteHold))) {
      this.advance();
      const granted = this.holders.get(owner);
      if (granted !== undefined) return this.confirm(owner, granted, leaseTime);
    }
    const head = this.queue.first;
    const writes = ownWriteHold !== undefined && this.holders.get(ownWriteHold)?.mode === 'exclusive';
    const mayPass = isPlain || head === undefined || head.owner === owner || writes;
    if (mayPass && (mine !== undefined || this.admits(mode, ownWriteHold))) {
      this.queue.leave(owner);
      const expiresAt = Math.max(mine?.expiresAt ?? 0, now() + leaseTime);
      const fencingToken = this.hold(owner, mode, expiresAt, leastToken, mine?.since);
      // The owner has polled, so the waiters behind it have got no message. Some of them may enter too.
      if (isPlain || head?.owner === owner) this.advance();
      return { granted: true, fencingToken };
    }
    const arrival =
      entry === undefined ? undefined : this.takeEntry({ owner, mode, leaseTime }, entry.arrival);
    return this.busy(owner, mode, arrival);
  }

  renew(owner: string, leaseTime: number): HoldState {
    this.holders.dropExpired();
    const hold = this.holders.get(owner);
    // Beside an exclusive hold there is no other one, so another owner has the lock. A shared hold may have been there
    // before.
    if (hold === undefined) return this.holders.admits('shared', Infinity) ? 'deleted' : 'taken';
    hold.expiresAt = Math.max(hold.expiresAt, now() + leaseTime);
    return 'held';
  }

  leave({ owner, fencingToken, keepFor, queue }: ReleaseRequest, next?: NextOwner): HandOverReply {
    const { mode } = queue ?? PLAIN_REQUEST;
    this.queue.leave(owner);
    this.holders.dropExpired();
    const hold = this.holders.get(owner);
    this.holders.delete(owner);
    if (hold !== undefined && keepFor !== undefined && keepFor > 0) {
      // Kept under another owner, which does not match a renewal that comes late.
      this.holders.put(keptFor(owner), { ...hold, expiresAt: now() + keepFor });
    }
    // A token from a hand-off inside of the owner's process is greater than any token that is known here.
    if (hold !== undefined) this.fencingToken = Math.max(this.fencingToken ?? 0, fencingToken ?? 0);
    const gone = this.admits(mode) ? 'deleted' : 'taken';
    // The request may have been sent twice. A claim that the next owner got meanwhile becomes its whole lease.
    const stands = next !== undefined && this.holders.get(next.owner) === undefined;
    if (next !== undefined && !stands) this.renew(next.owner, next.leaseTime);
    const arrival = stands ? this.takeEntry({ ...next, mode }) : undefined;
    const leftFor = this.handOver(next?.owner);
    const released = hold === undefined ? gone : 'released';
    return { released, next: this.answerTo(next, mode, arrival, leftFor) };
  }

  /** @returns the token of the next owner; undefined if none of the two owners holds the lock */
  transfer({ owner, next, leaseTime, leastToken, queue }: TransferRequest): number | undefined {
    const { mode } = queue ?? PLAIN_REQUEST;
    this.holders.dropExpired();
    const given = this.holders.get(next);
    const before = given ?? this.holders.get(owner);
    if (before?.mode !== mode) return undefined;
    const expiresAt = Math.max(given?.expiresAt ?? 0, now() + leaseTime);
    if (given !== undefined && given.fencingToken >= leastToken) {
      given.expiresAt = expiresAt;
      return given.fencingToken;
    }
    this.holders.delete(owner);
    const token = this.hold(next, mode, expiresAt, leastToken);
    if (expiresAt < before.expiresAt) {
      // The waiters know a later end.
      this.advance();
      this.around.tellOutsiders();
    }
    return token;
  }

  clear(mode: Mode | undefined, forced: Asker | undefined): boolean {
    this.holders.dropExpired();
    // A plain lock is on neither side.
    const isAsked = (hold: MemoryHold) => mode === undefined || (this.kind !== 'lock' && hold.mode === mode);
    const taken = [...this.holders].filter(([, hold]) => isAsked(hold));
    for (const [owner] of taken) {
      this.holders.delete(owner);
      this.around.tell(owner, { type: 'lost', owner, forced });
    }
    if (taken.length > 0) this.handOver();
    return taken.length > 0;
  }

  /** The hold that keeps this owner out of a plain lock. */
  inTheWayOf(owner: string): { retryAfter: number; holder: string } | undefined {
    this.holders.dropExpired();
    const [deadline, holder] = this.holders.inTheWay('exclusive');
    return holder === undefined || holder === owner ? undefined : { retryAfter: deadline - now(), holder };
  }

  /** Gives the lock to the next waiter in the queue, or leaves it to the waiters outside of the queue. */
  private handOver(asker?: string): number | undefined {
    if (this.kind !== 'lock') {
      this.advance();
      return undefined;
    }
    const outsiders = this.around.outsiders();
    const chances = TURNS_IN_A_ROW * (outsiders + this.queue.length);
    const isLeft = this.holders.size === 0 && random() * chances < outsiders;
    if (!isLeft) this.advance(asker);
    if (this.holders.size === 0 || this.holders.owners.some(isKept)) this.around.tellOutsiders();
    return isLeft ? this.tellLeft(asker) : undefined;
  }

  /** Tells the first live waiter that the lock is left to the waiters outside of the queue, and removes the dead ones. */
  private tellLeft(asker: string | undefined): number | undefined {
    const within = LEFT_TO_OUTSIDERS;
    for (const { owner } of this.queue) {
      if (owner === asker) return within;
      if (this.around.tell(owner, { type: 'next', owner, within, listen: true })) {
        this.tellFurther(CLAIM, owner);
        return undefined;
      }
      this.queue.leave(owner);
    }
    return undefined;
  }

  private answerTo(
    next: NextOwner | undefined,
    mode: Mode,
    arrival: number | undefined,
    leftFor: number | undefined,
  ): AcquireReply {
    const hold = next === undefined ? undefined : this.holders.get(next.owner);
    if (hold !== undefined) {
      return { granted: true, fencingToken: hold.fencingToken, rivals: this.rivals };
    }
    const busy = this.busy(next?.owner ?? '', mode, arrival);
    return leftFor === undefined ? busy : { ...busy, retryAfter: leftFor, listen: true };
  }

  private get rivals(): Rivals {
    if (this.kind === 'lock' && this.around.outsiders() > 0) return 'outside';
    return this.queue.length > 0 ? 'queued' : 'none';
  }

  private busy(
    owner: string,
    mode: Mode,
    arrival: number | undefined,
  ): Extract<AcquireReply, { granted: false }> {
    const [deadline, holder] = this.holders.inTheWay(mode);
    const retryAfter = lookAfter(Math.max(deadline - now(), 1), this.queue.rankOf(owner));
    return { granted: false, retryAfter, arrival, holder };
  }

  private confirm(owner: string, hold: MemoryHold, leaseTime: number): AcquireReply {
    this.queue.leave(owner);
    this.renew(owner, leaseTime);
    return { granted: true, fencingToken: hold.fencingToken };
  }

  private hold(owner: string, mode: Mode, expiresAt: number, leastToken = 0, since = wallTime()): number {
    const fencingToken = this.around.nextToken(Math.max(leastToken, (this.fencingToken ?? 0) + 1));
    this.fencingToken = fencingToken;
    this.holders.put(owner, { mode, expiresAt, since, fencingToken });
    return fencingToken;
  }

  private takeEntry(entry: Omit<QueueEntry, 'arrival'>, before?: number): number {
    return this.queue.take(entry, before, this.around.microseconds());
  }

  /**
   * Lets in each waiter at the head that may enter now: for the whole lease if it has arrived within a claim's time,
   * otherwise on a claim. Leaves out a waiter if its client has no subscription.
   * @param asker gets its answer without a message
   */
  private advance(asker?: string): void {
    this.holders.dropExpired();
    for (const { owner, mode, arrival, leaseTime: wanted } of this.queue) {
      if (!this.admits(mode)) {
        const within = this.holders.inTheWay(mode)[0] - now();
        if (owner === asker || this.around.tell(owner, { type: 'next', owner, within })) {
          if (within <= CLAIM) this.tellFurther(within, owner);
          return;
        }
        this.queue.leave(owner);
        continue;
      }
      this.queue.leave(owner);
      const grantedAt = now();
      const age = this.around.microseconds() - arrival;
      const isNew = age >= 0 && age < CLAIM * 1_000;
      const isWhole = isNew || owner === asker;
      const leaseTime = isWhole ? wanted : Math.min(wanted, CLAIM);
      const fencingToken = this.hold(owner, mode, grantedAt + leaseTime);
      if (owner === asker) continue;
      const { rivals } = this;
      const grant = { type: 'granted', owner, fencingToken, grantedAt, leaseTime, rivals } as const;
      if (!this.around.tell(owner, grant)) this.holders.delete(owner);
    }
  }

  /** The head may be as dead as the owner of the claim in its way, so some of the waiters further back poll, too. */
  private tellFurther(left: number, head: string): void {
    const firstWaiters = this.queue.firstOfOthers(clientOf(head));
    const last = firstWaiters.length - 1;
    for (let at = 0; at <= last; at = at === last ? Infinity : Math.min(2 * at + 1, last)) {
      const { rank, owner } = firstWaiters[at] ?? { rank: 0, owner: head };
      this.around.tell(owner, { type: 'next', owner, within: lookAfter(left, rank) });
    }
  }

  admits(mode: Mode, ownWriteHold?: string): boolean {
    return this.holders.admits(mode, this.capacity, ownWriteHold);
  }
}
