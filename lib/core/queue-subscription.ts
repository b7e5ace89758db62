import type { LockStore, QueueMessage, Subscription } from '../stores/lock-store.js';

/** Hears what the store tells this client. */
export interface QueueMessages {
  /** No messages have been asked for yet. */
  readonly untried: boolean;
  /** Whether messages can be heard, of which a waiter in a queue has to be certain. */
  readonly listening: boolean;
  /** @returns whether messages can be heard now */
  listen(): Promise<boolean>;
}

/** The messages of the store to one client: one subscription, however many places in queues and leases it has. */
export class QueueSubscription implements QueueMessages {
  private subscription: Subscription | undefined;
  private subscribing: Promise<boolean> | undefined;
  /** The last attempt to hear messages has failed. */
  private deaf = false;
  private closed = false;

  constructor(
    private readonly client: string,
    private readonly store: Pick<LockStore, 'subscribeToQueue'>,
    private readonly onMessage: (message: QueueMessage) => void,
    /** Messages are heard from now on; those before it have been missed. */
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
      const subscription = await this.store.subscribeToQueue(this.client, (message) => {
        if (!this.closed) this.onMessage(message);
      });
      // Only now: a subscription that comes back with its connection is better than none.
      former?.close();
      if (this.closed) subscription.close();
      else this.subscription = subscription;
      this.deaf = false;
      if (this.listening) this.onListening();
    } catch {
      // Without messages the places poll and the holds are looked at less often; the store's own reports tell of the outage.
      this.deaf = true;
    }
    return this.listening;
  }
}
