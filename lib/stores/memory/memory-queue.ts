import {
  type AcquireReply,
  CLAIM,
  type HoldState,
  type QueueMessage,
  type QueueRequest,
  type QueueTerms,
  type ReleaseReply,
} from '../lock-store.js';
import { now } from '../../lock.clock.js';

/** Keeps those who look by themselves from looking all at once, ms per place. */
const SPREAD = 10;
/** The most of it while a claim is in the way, ms. */
const WIDEST = 250;

type Mode = QueueTerms['mode'];

interface QueuedHold {
  readonly mode: Mode;
  expiresAt: number;
  readonly since: number;
  readonly fencingToken: number;
}

interface Place {
  readonly owner: string;
  readonly mode: Mode;
  /** Microseconds since the epoch. */
  readonly arrival: number;
  /** ms */
  readonly leaseTime: number;
}

/** What a queue needs from the store that it lives in. */
export interface QueueSurroundings {
  nextToken(): number;
  microseconds(): number;
  /** False when the owner's client does not listen. */
  tell(owner: string, message: QueueMessage): boolean;
}

/** A lock with holders that have a deadline each, and waiters in the order of their arrival: as the Redis scripts do it. */
export class MemoryQueue {
  readonly holders = new Map<string, QueuedHold>();
  /** In order. */
  waiting: Place[] = [];
  /** The last one given out. */
  fencingToken: number | undefined;

  constructor(
    readonly kind: QueueTerms['kind'],
    readonly capacity: number,
    private readonly around: QueueSurroundings,
  ) {}

  get isOver(): boolean {
    this.dropExpired();
    return this.holders.size === 0 && this.waiting.length === 0;
  }

  /** Lets in the waiters whose turn it is, and takes out the dead ones. Returns whether the lock is in use after that. */
  settle(): boolean {
    if (!this.isOver) this.advance();
    return !this.isOver;
  }

  enter(owner: string, leaseTime: number, { mode, place, beside }: QueueRequest): AcquireReply {
    this.dropExpired();
    const mine = this.holders.get(owner);
    if (mine !== undefined) return this.confirm(owner, mine, leaseTime);

    const [first] = this.waiting;
    if (first !== undefined && first.owner !== owner && this.admits(first.mode)) {
      this.advance();
      const granted = this.holders.get(owner);
      if (granted !== undefined) return this.confirm(owner, granted, leaseTime);
    }
    const [head] = this.waiting;
    const mayPass = head === undefined || head.owner === owner || beside !== undefined;
    if (mayPass && this.admits(mode, beside)) {
      this.leaveQueue(owner);
      const fencingToken = this.hold(owner, mode, now() + leaseTime);
      // It has looked by itself, so nobody has told those behind it, some of whom may enter too.
      if (head?.owner === owner) this.advance();
      return { granted: true, fencingToken };
    }
    const arrival = place === undefined ? undefined : this.stand(owner, mode, leaseTime, place.arrival);
    const rank = Math.max(
      0,
      this.waiting.findIndex((waiting) => waiting.owner === owner),
    );
    const [deadline, holder] = this.inTheWay(mode);
    return {
      granted: false,
      retryAfter: lookAfter(Math.max(deadline - now(), 1), rank),
      arrival,
      holder,
    };
  }

  renew(owner: string, leaseTime: number): HoldState {
    this.dropExpired();
    const hold = this.holders.get(owner);
    // Beside an exclusive holder is no place; a shared one may have been there before.
    if (hold === undefined) return this.admits('shared', undefined, Infinity) ? 'deleted' : 'taken';
    hold.expiresAt = Math.max(hold.expiresAt, now() + leaseTime);
    return 'held';
  }

  leave(owner: string, { mode }: QueueTerms, keepFor: number): ReleaseReply {
    this.leaveQueue(owner);
    this.dropExpired();
    const hold = this.holders.get(owner);
    this.holders.delete(owner);
    if (hold !== undefined && keepFor > 0) {
      this.holders.set(`kept:${owner}`, { ...hold, expiresAt: now() + keepFor });
    }
    const gone = this.admits(mode) ? 'deleted' : 'taken';
    this.advance();
    return hold === undefined ? gone : 'released';
  }

  clear(mode: Mode | undefined): boolean {
    this.dropExpired();
    const taken = [...this.holders].filter(([, hold]) => mode === undefined || hold.mode === mode);
    for (const [owner] of taken) {
      this.holders.delete(owner);
      this.around.tell(owner, { type: 'lost', owner });
    }
    this.advance();
    return taken.length > 0;
  }

  private confirm(owner: string, hold: QueuedHold, leaseTime: number): AcquireReply {
    this.leaveQueue(owner);
    this.renew(owner, leaseTime);
    return { granted: true, fencingToken: hold.fencingToken };
  }

  private hold(owner: string, mode: Mode, expiresAt: number): number {
    const fencingToken = this.around.nextToken();
    this.fencingToken = fencingToken;
    this.holders.set(owner, { mode, expiresAt, since: Date.now(), fencingToken });
    return fencingToken;
  }

  private stand(owner: string, mode: Mode, leaseTime: number, before: number | undefined): number {
    const standing = this.waiting.find((place) => place.owner === owner);
    if (standing !== undefined) return standing.arrival;
    const last = this.waiting.at(-1)?.arrival ?? 0;
    const arrival = before ?? Math.max(last + 1, this.around.microseconds());
    this.waiting.push({ owner, mode, arrival, leaseTime });
    this.waiting.sort((a, b) => a.arrival - b.arrival);
    return arrival;
  }

  /**
   * Lets in those at the head who may enter now: for the whole lease where they have arrived within a claim's time, else
   * on a claim. A client that does not listen is left out.
   */
  private advance(): void {
    this.dropExpired();
    for (let head = this.waiting[0]; head !== undefined; head = this.waiting[0]) {
      const { owner, mode, arrival } = head;
      if (!this.admits(mode)) {
        const within = this.inTheWay(mode)[0] - now();
        if (this.around.tell(owner, { type: 'next', owner, within })) {
          if (within <= CLAIM) this.tellFurther(within, owner);
          return;
        }
        this.waiting.shift();
        continue;
      }
      this.waiting.shift();
      const grantedAt = now();
      const age = this.around.microseconds() - arrival;
      const isNew = age >= 0 && age < CLAIM * 1_000;
      const leaseTime = isNew ? head.leaseTime : Math.min(head.leaseTime, CLAIM);
      const fencingToken = this.hold(owner, mode, grantedAt + leaseTime);
      const heard = this.around.tell(owner, { type: 'granted', owner, fencingToken, grantedAt, leaseTime });
      if (!heard) this.holders.delete(owner);
    }
  }

  /** The head may be as dead as the owner of the claim in its way: some of those further back look, too. */
  private tellFurther(left: number, head: string): void {
    const seen = new Set([clientOf(head)]);
    const firstWaiters: [rank: number, owner: string][] = [];
    for (const [rank, { owner }] of this.waiting.entries()) {
      if (!seen.has(clientOf(owner))) firstWaiters.push([rank, owner]);
      seen.add(clientOf(owner));
    }
    const last = firstWaiters.length - 1;
    for (let at = 0; at <= last; at = at === last ? Infinity : Math.min(2 * at + 1, last)) {
      const [rank, owner] = firstWaiters[at] ?? [0, head];
      this.around.tell(owner, { type: 'next', owner, within: lookAfter(left, rank) });
    }
  }

  private admits(mode: Mode, beside?: string, capacity = this.capacity): boolean {
    if (mode === 'exclusive') return this.holders.size === 0;
    if (this.holders.size >= capacity) return false;
    return [...this.holders].every(([owner, hold]) => hold.mode === 'shared' || owner === beside);
  }

  private inTheWay(mode: Mode): [deadline: number, holder: string | undefined] {
    const byDeadline = [...this.holders].sort(([, a], [, b]) => a.expiresAt - b.expiresAt);
    const [owner, hold] = byDeadline.at(mode === 'exclusive' ? -1 : 0) ?? [];
    return [hold?.expiresAt ?? now(), owner];
  }

  private leaveQueue(owner: string): void {
    this.waiting = this.waiting.filter((place) => place.owner !== owner);
  }

  private dropExpired(): void {
    for (const [owner, { expiresAt }] of this.holders) {
      if (expiresAt <= now()) this.holders.delete(owner);
    }
  }
}

const clientOf = (owner: string): string => owner.slice(0, owner.lastIndexOf(':'));

/** When a waiter looks by itself, ms from now, while the hold in its way ends in `left` ms: as the Redis scripts say it. */
function lookAfter(left: number, rank: number): number {
  if (rank === 0) return left;
  return left <= CLAIM ? left + Math.min(rank * SPREAD, WIDEST) : left + CLAIM + rank * SPREAD;
}
