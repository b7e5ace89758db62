import type { ReleaseRequest } from '../../store/lock-store.js';
import { CLAIM } from '../../store/queue-messages.js';
import { LastEntries } from '../last-entries.js';
import type { LockClient } from '../lock-client.js';
import { TransientMap } from '../../store/transient-map.js';
import { clearTimer } from '../../runtime/runtime.js';
import { idleTimerAt, now } from '../holding/deadline.js';
import type { AcquisitionMessage } from './acquisition.js';
import type { LocalQueue } from './local-queue.js';

/** Age, ms, at which an acquisition is worth a label in the store, which other processes may ask for. Most are shorter. */
const LONG = 1_000;
/** Releases, at least, of owners that a store which has lost its last writes may have in its queue, or as holders. */
const TOMBSTONES = 5_000;

interface Tombstone {
  readonly release: ReleaseRequest;
  /** When the release was sent the first time. */
  readonly at: number;
  /** The store has named the owner as a holder after that. */
  wasHeld: boolean;
  /** Of the same owner, for another name: locks that one command has taken have one owner. */
  readonly before: Tombstone | undefined;
}

/**
 * The acquisitions of one client. The store sends the client a message at the turn of an acquisition.
 */
export class Acquisitions {
  /**
   * By the first owner of each acquisition. Without a store queue, an acquisition has further owners, which get no
   * messages.
   */
  private readonly queues = new TransientMap<string, LocalQueue>();
  /**
   * By owner, the releases of each owner that has left its entry in a store queue, or has released its hold.
   * After a failover, the new primary may not know that: the owner is the holder again until the end of its lease, or gets
   * the lock, which would keep living waiters out for the length of a claim.
   */
  private readonly tombstones = new LastEntries<string, Tombstone>(Infinity);
  /** Releases until the next table, because one owner may have any number of them. */
  private untilTurn = TOMBSTONES;

  /** One timer for all acquisitions, made for the first one that waits: most are granted at once. */
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly client: LockClient) {}

  add(owner: string, queue: LocalQueue): void {
    this.queues.set(owner, queue);
  }

  /** Called when an acquisition begins to wait for a busy lock. */
  waits(): void {
    this.timer ??= idleTimerAt(now() + LONG, this.lookAtAge);
  }

  /**
   * Ends the record of an acquisition.
   * @param departed the request with which its owner has left; undefined after a grant
   */
  remove(owner: string, departed?: ReleaseRequest): void {
    if (this.queues.delete(owner) && departed !== undefined) this.departed(departed);
    if (this.timer === undefined || this.queues.size > 0) return;
    clearTimer(this.timer);
    this.timer = undefined;
  }

  onMessage(message: AcquisitionMessage): void {
    const { owner } = message;
    if (owner === undefined) {
      for (const queue of this.queues.values()) queue.acquisition?.lookAgain();
      return;
    }
    const queue = this.queues.get(owner);
    if (queue !== undefined) {
      queue.acquisition?.onMessage(message);
      return;
    }
    // A message of the grant came after the owner had left. An owner with an entry in a queue has one name.
    const left = this.tombstones.get(owner);
    if (left !== undefined) this.releaseAgain(left.release.name, owner, Infinity);
  }

  /**
   * Releases the holder once more if it has left before the moment. The store names it in the answer to a request of that
   * moment.
   */
  releaseAgain(name: string, holder: string, askedAt: number): void {
    const left = this.tombstoneOf(name, holder);
    if (left === undefined || askedAt <= left.at) return;
    if (askedAt < Infinity) left.wasHeld = true;
    const { leaseTime = 0, keepFor = 0 } = left.release;
    const kept = Math.ceil(left.at + keepFor - now());
    const release = { ...left.release, keepFor: kept > 0 ? kept : undefined };
    // The hold lasts for the requested lease, or for a claim.
    void this.client.releaser.release(release, now() + Math.max(leaseTime, CLAIM));
  }

  /**
   * Whether an owner that has left was a holder until then. Of its two releases, the later one may come first, as when a slot
   * of a cluster is being moved, and the other one finds no hold.
   */
  wasHeld(name: string, owner: string): boolean {
    return this.tombstoneOf(name, owner)?.wasHeld === true;
  }

  private readonly lookAtAge = (): void => {
    this.timer = undefined;
    const [oldest] = this.queues.values();
    if (oldest === undefined) return;
    const age = now() - (oldest.askingSince ?? now());
    if (age >= LONG) this.client.labels.keep();
    this.timer = idleTimerAt(now() + (age < LONG ? LONG - age : LONG), this.lookAtAge);
  };

  departed(release: ReleaseRequest): void {
    const { owner } = release;
    this.tombstones.set(owner, { release, at: now(), wasHeld: false, before: this.tombstones.get(owner) });
    if (--this.untilTurn > 0) return;
    this.untilTurn = TOMBSTONES;
    this.tombstones.turn();
  }

  private tombstoneOf(name: string, owner: string): Tombstone | undefined {
    let left = this.tombstones.get(owner);
    while (left !== undefined && left.release.name !== name) left = left.before;
    return left;
  }
}
