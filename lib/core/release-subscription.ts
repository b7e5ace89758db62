import type { LockStore, Subscription } from '../port/lock-store.js';

export interface ReleaseListener {
  /** The lock may have been released, or messages may have been missed. */
  onMessage(): void;
  /** The subscription is active from now on. Messages before it have been missed. */
  onListening(): void;
}

/**
 * The messages of the releases of one lock, for waiters that no queue hands the lock to: on a store without queues, or
 * behind a hold of another library.
 */
export class ReleaseSubscription {
  private subscription: Subscription | undefined;
  private subscribing: Promise<boolean> | undefined;
  private closed = false;

  constructor(
    private readonly name: string,
    private readonly store: Pick<LockStore, 'subscribeToReleases'>,
    private readonly listener: ReleaseListener,
  ) {}

  get listening(): boolean {
    return this.subscription?.active === true;
  }

  /** @returns whether the subscription is active now */
  async listen(): Promise<boolean> {
    this.closed = false;
    if (this.listening) return true;
    this.subscribing ??= this.subscribe().finally(() => {
      this.subscribing = undefined;
    });
    return await this.subscribing;
  }

  close(): void {
    this.closed = true;
    this.subscription?.close();
    this.subscription = undefined;
  }

  private async subscribe(): Promise<boolean> {
    this.subscription?.close();
    this.subscription = undefined;
    try {
      const subscription = await this.store.subscribeToReleases(this.name, () => {
        this.listener.onMessage();
      });
      if (this.closed) subscription.close();
      else this.subscription = subscription;
      if (this.listening) this.listener.onListening();
      return subscription.active;
    } catch {
      // Without messages its owner polls. The store's own reports tell of the outage.
      return false;
    }
  }
}
