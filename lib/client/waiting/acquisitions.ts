import type { ReleaseRequest } from '../../store/lock-store.js';
import { CLAIM } from '../../store/queue-messages.js';
import type { Releaser } from '../../store/releaser.js';
import { TransientMap } from '../../store/transient-map.js';
import { clearTimer } from '../../runtime/runtime.js';
import { idleTimerAt, now } from '../holding/deadline.js';
import { isOutdated, turnDown } from './outdated-grant.js';
import { Tombstones } from './tombstones.js';
import type { AcquisitionMessage } from './acquisition.js';
import type { LocalQueue } from './local-queue.js';
import type { Tenure } from '../holding/tenure.js';

/** Age, ms, at which an acquisition is worth a label in the store, which other processes may ask for. Most are shorter. */
const LONG = 1_000;

/**
 * The acquisitions of one client, and its exclusive holds of the kinds in which each caller has its own entry. The
 * store sends the client a message at the turn of an acquisition.
 */
export class Acquisitions {
  /**
   * By the first owner of each acquisition. Without a store queue, an acquisition has further owners, which get no
   * messages.
   */
  private readonly queues = new TransientMap<string, LocalQueue>();
  private readonly tombstones = new Tombstones();
  /** By name. */
  private readonly exclusive = new TransientMap<string, Tenure>();

  /** One timer for all acquisitions, made for the first one that waits: most are granted at once. */
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly releaser: Pick<Releaser, 'release'>,
    /** Called once a second while an acquisition is older than LONG. */
    private readonly onLongAcquisition: () => void = () => undefined,
    /** Asks the store about a hold, and ends the hold if it is gone. */
    private readonly look: (tenure: Tenure) => void = () => undefined,
  ) {}

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
    if (this.queues.delete(owner) && departed !== undefined) this.tombstones.add(departed);
    if (this.timer === undefined || this.queues.size > 0) return;
    clearTimer(this.timer);
    this.timer = undefined;
  }

  onMessage(message: AcquisitionMessage): void {
    const { owner } = message;
    if (owner === undefined) {
      for (const queue of this.queues.values()) queue.toAcquisition()?.lookAgain();
      return;
    }
    const queue = this.queues.get(owner);
    if (queue !== undefined) {
      queue.toAcquisition()?.onMessage(message);
      return;
    }
    const left = this.tombstones.of(owner);
    if (left === undefined) return;
    // A message of the grant came after the owner had left. The hold lasts for the requested lease, or for a claim.
    void this.releaser.release(left, now() + Math.max(left.leaseTime ?? 0, CLAIM));
  }

  /**
   * Handles a grant. If this process has another hold that excludes the granted one, the store has lost the earlier of
   * the two.
   */
  begun(tenure: Tenure, ownWriteHold: string | undefined): void {
    const { name, queue } = tenure;
    const held = this.exclusive.get(name);
    const former = held?.owner === ownWriteHold ? undefined : held;
    if (former !== undefined && isOutdated(tenure, former)) {
      turnDown(tenure, this.releaser);
      this.look(former);
      return;
    }
    if (queue?.mode === 'exclusive') this.exclusive.set(name, tenure);
    former?.lose('taken');
  }

  private readonly lookAtAge = (): void => {
    this.timer = undefined;
    const [oldest] = this.queues.values();
    if (oldest === undefined) return;
    const age = now() - (oldest.askingSince ?? now());
    if (age >= LONG) this.onLongAcquisition();
    this.timer = idleTimerAt(now() + (age < LONG ? LONG - age : LONG), this.lookAtAge);
  };

  ended(tenure: Tenure): void {
    if (this.exclusive.get(tenure.name) === tenure) this.exclusive.delete(tenure.name);
  }

  departed(departure: ReleaseRequest): void {
    this.tombstones.add(departure);
  }
}
