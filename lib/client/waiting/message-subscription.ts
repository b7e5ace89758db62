import type { Subscription } from '../../store/lock-store.js';

/**
 * A subscription to messages of the store. A client has one for messages about its entries and holds. A local queue has
 * one for the releases of its lock if no store queue hands the lock over: on a store without queues, or behind a hold
 * of another library.
 */
export class MessageSubscription<M> {
  private subscription: Subscription | undefined;
  private opening: Promise<boolean> | undefined;
  /** Whether the last attempt failed. */
  private hasFailed = false;
  private closed = false;

  constructor(
    /** Returns undefined if the store sends no such messages. */
    private readonly open: (onMessage: (message: M) => void) => Promise<Subscription> | undefined,
    private readonly onMessage: (message: M) => void,
    /** Called when the subscription becomes active. Earlier messages have been missed. */
    private readonly onSubscribed: () => void,
  ) {}

  /** Whether no subscription has been tried. */
  get untried(): boolean {
    return this.subscription === undefined && !this.hasFailed;
  }

  /** Whether the subscription is certainly active. A waiter in a store queue needs that. */
  get isSubscribed(): boolean {
    return this.subscription?.active === true;
  }

  /** @returns whether the subscription is active now */
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
      // Closed last, because until then the former subscription may come back with its connection.
      former?.close();
      if (this.closed) subscription.close();
      else this.subscription = subscription;
      if (this.isSubscribed) this.onSubscribed();
    } catch {
      // Without messages, waiters poll, and holds are checked less often. The store reports the outage itself.
      this.hasFailed = true;
    }
    return this.isSubscribed;
  }
}
