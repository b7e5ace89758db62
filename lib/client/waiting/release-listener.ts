import type { LockStore } from '../../store/lock-store.js';
import { CLAIM } from '../../store/queue-messages.js';
import { now } from '../holding/deadline.js';
import { MessageSubscription } from './message-subscription.js';

/**
 * The subscription of a local queue to the releases of its lock, while no store queue hands the lock over: on a store
 * without queues, or behind a hold of another library.
 */
export class ReleaseListener extends MessageSubscription<void> {
  /** The last moment at which a hold required the subscription. */
  private neededAt = -Infinity;

  /**
   * @param onRelease called for each release, and if one may have been missed
   * @param onSubscribed called when the subscription becomes active; earlier releases were missed
   */
  constructor(
    store: Pick<LockStore, 'subscribeToReleases'>,
    name: string,
    onRelease: () => void,
    onSubscribed: () => void,
  ) {
    super((onMessage) => store.subscribeToReleases(name, onMessage), onRelease, onSubscribed);
  }

  override subscribe(): Promise<boolean> {
    this.neededAt = now();
    return super.subscribe();
  }

  /**
   * Keeps the subscription while the store leaves the lock to other owners for a moment. But each subscriber counts as
   * one of these owners: if no other library had the lock recently, processes that subscribe because of each other
   * would leave the lock to each other for ever.
   */
  keepWhileNeeded(): void {
    if (now() - this.neededAt < CLAIM) void super.subscribe();
    else this.close();
  }
}
