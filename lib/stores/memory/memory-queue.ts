import {
  type AcquireReply,
  CLAIM,
  type QueueMessage,
  type QueueRequest,
  type QueueTerms,
} from '../lock-store.js';

/** Keeps those who look by themselves from looking all at once, ms per place. */
const SPREAD = 10;

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

  constructor(
    readonly kind: QueueTerms['kind'],
    readonly capacity: number,
    private readonly around: QueueSurroundings,
  ) {}

  get isOver(): boolean {
    this.dropExpired();
    return this.holders.size === 0 && this.waiting.length === 0;
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
      const fencingToken = this.hold(owner, mode, performance.now() + leaseTime);
      // It has looked by itself, so nobody has told those behind it, some of whom may enter too.
      if (head?.owner === owner) this.advance();
      return { granted: true, fencingToken };
    }
    const arrival = place === undefined ? undefined : this.stand(owner, mode, place.arrival);
    const rank = Math.max(
      0,
      this.waiting.findIndex((waiting) => waiting.owner === owner),
    );
    const [deadline, holder] = this.inTheWay(mode);
    return {
      granted: false,
      retryAfter: Math.max(deadline - performance.now(), 1) + (rank > 0 ? CLAIM + rank * SPREAD : 0),
      arrival,
      holder,
    };
  }

  renew(owner: string, leaseTime: number): boolean {
    this.dropExpired();
    const hold = this.holders.get(owner);
    if (hold === undefined) return false;
    hold.expiresAt = Math.max(hold.expiresAt, performance.now() + leaseTime);
    return true;
  }

  leave(owner: string, keepFor: number): boolean {
    this.leaveQueue(owner);
    this.dropExpired();
    const hold = this.holders.get(owner);
    this.holders.delete(owner);
    if (hold !== undefined && keepFor > 0) {
      this.holders.set(`kept:${owner}`, { ...hold, expiresAt: performance.now() + keepFor });
    }
    this.advance();
    return hold !== undefined;
  }

  clear(): boolean {
    this.dropExpired();
    const held = this.holders.size > 0;
    this.holders.clear();
    this.advance();
    return held;
  }

  private confirm(owner: string, hold: QueuedHold, leaseTime: number): AcquireReply {
    this.leaveQueue(owner);
    this.renew(owner, leaseTime);
    return { granted: true, fencingToken: hold.fencingToken };
  }

  private hold(owner: string, mode: Mode, expiresAt: number): number {
    const fencingToken = this.around.nextToken();
    this.holders.set(owner, { mode, expiresAt, since: Date.now(), fencingToken });
    return fencingToken;
  }

  private stand(owner: string, mode: Mode, before: number | undefined): number {
    const standing = this.waiting.find((place) => place.owner === owner);
    if (standing !== undefined) return standing.arrival;
    const last = this.waiting.at(-1)?.arrival ?? 0;
    const arrival = before ?? Math.max(last + 1, this.around.microseconds());
    this.waiting.push({ owner, mode, arrival });
    this.waiting.sort((a, b) => a.arrival - b.arrival);
    return arrival;
  }

  /** Lets in those at the head who may enter now, each on a claim; whose client does not listen is left out. */
  private advance(): void {
    this.dropExpired();
    for (let head = this.waiting[0]; head !== undefined; head = this.waiting[0]) {
      const { owner, mode } = head;
      if (!this.admits(mode)) {
        const within = this.inTheWay(mode)[0] - performance.now();
        if (this.around.tell(owner, { type: 'next', owner, within })) return;
        this.waiting.shift();
        continue;
      }
      this.waiting.shift();
      const grantedAt = performance.now();
      const fencingToken = this.hold(owner, mode, grantedAt + CLAIM);
      const heard = this.around.tell(owner, { type: 'granted', owner, fencingToken, grantedAt });
      if (!heard) this.holders.delete(owner);
    }
  }

  private admits(mode: Mode, beside?: string): boolean {
    if (mode === 'exclusive') return this.holders.size === 0;
    if (this.holders.size >= this.capacity) return false;
    return [...this.holders].every(([owner, hold]) => hold.mode === 'shared' || owner === beside);
  }

  private inTheWay(mode: Mode): [deadline: number, holder: string | undefined] {
    const byDeadline = [...this.holders].sort(([, a], [, b]) => a.expiresAt - b.expiresAt);
    const [owner, hold] = byDeadline.at(mode === 'exclusive' ? -1 : 0) ?? [];
    return [hold?.expiresAt ?? performance.now(), owner];
  }

  private leaveQueue(owner: string): void {
    this.waiting = this.waiting.filter((place) => place.owner !== owner);
  }

  private dropExpired(): void {
    for (const [owner, { expiresAt }] of this.holders) {
      if (expiresAt <= performance.now()) this.holders.delete(owner);
    }
  }
}
