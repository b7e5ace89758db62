import { subscribeToMessages } from '../port/subscribe-to-messages.js';
import type { LockStore, QueueMessage, Subscription } from '../port/lock-store.js';

/** The subscription to the messages of the store to this client. */
export interface QueueMessages {
  /** No subscription has been tried yet. */
  readonly untried: boolean;
  /** Whether the subscription is active. A waiter in a queue has to be certain of it. */
  readonly listening: boolean;
  /** @returns whether the subscription is active now */
  listen(): Promise<boolean>;
}

/** The messages of the store to one client: one subscription for all its entries in store queues and all its leases. */
export class QueueSubscription implements QueueMessages {
  private subscription: Subscription | undefined;
  private subscribing: Promise<boolean> | undefined;
  /** The last attempt to subscribe has failed. */
  private deaf = false;
  private closed = false;

  constructor(
    private readonly client: string,
    private readonly store: Pick<LockStore, 'queues' | 'subscribeToLosses'>,
    private readonly onMessage: (message: QueueMessage) => void,
    /** The subscription is active from now on. Messages before it have been missed. */
    private readonly onListening: () => void,
  ) {}

  get untried(): boolean {
    return this.subscription === undefined && !this.deaf;
  }

  get listening(): boolean {
    return this.subscription?.active === true;
  }

  async listen(): Promise<boolean> {
    if (this.listening) return true;
    this.subscribing ??= this.subscribe().finally(() => {
      this.subscribing = undefined;
    });
    return await this.subscribing;
  }

  close(): void {
    this.closed = true;
    this.subscription?.close();
  }

  private async subscribe(): Promise<boolean> {
    const former = this.subscription;
    try {
      const subscription = await subscribeToMessages(this.store, this.client, (message) => {
        if (!this.closed) this.onMessage(message);
      });
      if (subscription === undefined) {
        this.deaf = true;
        return false;
      }
      // Only now: a subscription that comes back with its connection is better than none.
      former?.close();
      if (this.closed) subscription.close();
      else this.subscription = subscription;
      this.deaf = false;
      if (this.listening) this.onListening();
    } catch {
      // Without messages the acquisitions poll and the holds are looked at less often. The store's own reports tell of the
      // outage.
      this.deaf = true;
    }
    return this.listening;
  }
}
