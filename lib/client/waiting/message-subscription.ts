import type { Subscription } from '../../store/lock-store.js';

/** What waiters and holders see of a subscription to the messages of the store. */
export interface Messages {
  /** No subscription has been tried yet. */
  readonly untried: boolean;
  /** Whether the subscription is active. A waiter in a queue has to be certain of it. */
  readonly isSubscribed: boolean;
  /** @returns whether the subscription is active now */
  subscribe(): Promise<boolean>;
}

/**
 * A subscription to messages of the store. A client has one to the messages about its entries and its holds. A local queue
 * has one to the releases of its lock where no store queue hands the lock over: on a store without queues, or behind a hold
 * of another library.
 */
export class MessageSubscription<M> implements Messages {
  private subscription: Subscription | undefined;
  private opening: Promise<boolean> | undefined;
  /** The last attempt has failed. */
  private hasFailed = false;
  private closed = false;

  constructor(
    /** Gives undefined for a store that sends no such messages. */
    private readonly open: (onMessage: (message: M) => void) => Promise<Subscription> | undefined,
    private readonly onMessage: (message: M) => void,
    /** The subscription is active from now on. Messages before it have been missed. */
    private readonly onSubscribed: () => void,
  ) {}

  get untried(): boolean {
    return this.subscription === undefined && !this.hasFailed;
  }

  get isSubscribed(): boolean {
    return this.subscription?.active === true;
  }

  async subscribe(): Promise<boolean> {
    this.closed = false;
    if (this.isSubscribed) return true;
    this.opening ??= this.reopen().finally(() => {
      this.opening = undefined;
    });
    return await this.opening;
  }

  close(): void {
    this.closed = true;
    this.subscription?.close();
    this.subscription = undefined;
  }

  private async reopen(): Promise<boolean> {
    const former = this.subscription;
    try {
      const subscription = await this.open((message) => {
        if (!this.closed) this.onMessage(message);
      });
      this.hasFailed = subscription === undefined;
      if (subscription === undefined) return false;
      // Only now: a subscription that comes back with its connection is better than none.
      former?.close();
      if (this.closed) subscription.close();
      else this.subscription = subscription;
      if (this.isSubscribed) this.onSubscribed();
    } catch {
      // Without messages, waiters poll and holds are looked at less often. The store's own reports tell of the outage.
      this.hasFailed = true;
    }
    return this.isSubscribed;
  }
}
