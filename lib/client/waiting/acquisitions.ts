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

/** How long an acquisition lasts before other processes may ask what its client is called, ms. Most are over by then. */
const LONG = 1_000;

/**
 * The acquisitions of one client, and its exclusive holds of the kinds where each caller has an entry of its own. The store
 * tells the client when the turn of one has come.
 */
export class Acquisitions {
  /**
   * The queue of each, by its first owner. On a store without queues an acquisition has other owners later, which get no
   * messages.
   */
  private readonly queues = new TransientMap<string, LocalQueue>();
  private readonly tombstones = new Tombstones();
  /** By name. */
  private readonly exclusive = new TransientMap<string, Tenure>();

  /** For all acquisitions, from the first on that has to wait: most are granted at once, and need none. */
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly releaser: Pick<Releaser, 'release'>,
    /** Called once a second while an acquisition lasts for longer. */
    private readonly onLongAcquisition: () => void = () => undefined,
    /** Asks the store about a hold, and ends one that is gone. */
    private readonly look: (tenure: Tenure) => void = () => undefined,
  ) {}

  add(owner: string, queue: LocalQueue): void {
    this.queues.set(owner, queue);
  }

  /** Another owner has the lock that one of the acquisitions waits for. */
  waits(): void {
    this.timer ??= idleTimerAt(now() + LONG, this.lookAtAge);
  }

  /**
   * The acquisition has ended.
   * @param departed the request with which its owner has left; undefined if it is granted
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
    // The owner has been granted the lease that it asked for, or a claim.
    void this.releaser.release(left, now() + Math.max(left.leaseTime ?? 0, CLAIM));
  }

  /** The store has granted a hold. A hold of this process that excludes it is gone, or is the later grant. */
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
