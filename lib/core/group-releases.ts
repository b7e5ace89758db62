import type { LockStore, Subscription } from '../stores/lock-store.js';

/**
 * Hears of the releases of the names that are in the way of a group. A name that has been in the way once is likely to
 * be so again, so its subscription stays; a release of a name that is not in the way wakes no waiter.
 */
export class GroupReleases implements Subscription {
  /** By name. */
  private readonly subscriptions = new Map<string, Subscription>();
  private readonly subscribing = new Map<string, Promise<void>>();
  /** Whose releases were heard while a request is under way: its answer says whether they matter. */
  private meanwhile: Set<string> | undefined;
  private closed = false;

  constructor(
    private readonly store: Pick<LockStore, 'subscribe'>,
    /** One of these has to be released before the group can be granted. */
    private inTheWay: readonly string[],
    private readonly onWake: () => void,
    private readonly onClose: () => void,
  ) {}

  get active(): boolean {
    return this.hears(this.inTheWay);
  }

  /** A request leaves. */
  asking(): void {
    this.meanwhile = new Set();
  }

  /**
   * The request has been refused because of these names. Wakes the line when one of them has been released since, and
   * when their releases can be heard that could not be heard before.
   * @returns whether no release can have been missed
   */
  refused(names: readonly string[]): boolean {
    const released = names.some((name) => this.meanwhile?.has(name));
    this.answered(names);
    if (!this.hears(names)) {
      void this.follow().then((heard) => {
        if (heard && !this.closed) this.onWake();
      });
      return false;
    }
    if (released) this.onWake();
    return true;
  }

  /** The request under way is over. */
  answered(names = this.inTheWay): void {
    this.meanwhile = undefined;
    this.inTheWay = names;
  }

  /** @returns whether the releases of all that is in the way are heard now */
  async follow(): Promise<boolean> {
    await Promise.all(this.inTheWay.map((name) => this.listenTo(name)));
    return this.active;
  }

  close(): void {
    this.closed = true;
    for (const subscription of this.subscriptions.values()) subscription.close();
    this.onClose();
  }

  private hears(names: readonly string[]): boolean {
    return names.every((name) => this.subscriptions.get(name)?.active === true);
  }

  private async listenTo(name: string): Promise<void> {
    if (this.hears([name])) return;
    let subscribing = this.subscribing.get(name);
    if (subscribing === undefined) {
      subscribing = this.subscribe(name).finally(() => this.subscribing.delete(name));
      this.subscribing.set(name, subscribing);
    }
    await subscribing;
  }

  private async subscribe(name: string): Promise<void> {
    this.subscriptions.get(name)?.close();
    this.subscriptions.delete(name);
    try {
      const subscription = await this.store.subscribe(name, () => {
        this.hear(name);
      });
      if (this.closed) subscription.close();
      else this.subscriptions.set(name, subscription);
    } catch {
      // Without messages the line polls, and tries again to listen with each refusal.
    }
  }

  private hear(name: string): void {
    if (this.meanwhile !== undefined) this.meanwhile.add(name);
    else if (this.inTheWay.includes(name)) this.onWake();
  }
}
