import { LockClosedError } from '../lock.errors.js';
import { CLAIM, type QueueMessage, type Subscription } from '../stores/lock-store.js';
import { now } from './deadline.js';
import { Departures } from './departures.js';
import { type Ear, type PlacesContext, type QueuedRequest, QueuePlace } from './queue-place.js';
import type { Tenure } from './tenure.js';
import type { Busy, TenureKeeper } from './waiting.js';

/**
 * The places of one client in the queues of the store. Every waiter stands in the store's queue from its arrival, for
 * the order across processes is the promise; the store tells when its turn has come. Each also looks again by itself,
 * at the time that the store has named: a message may be lost.
 */
export class QueuePlaces implements TenureKeeper, Ear {
  private readonly places = new Map<string, QueuePlace>();
  private readonly departures = new Departures();
  private subscription: Subscription | undefined;
  /** The last attempt to hear messages has failed. */
  private deaf = false;
  private closed = false;
  private subscribing: Promise<boolean> | undefined;

  constructor(
    private readonly client: string,
    private readonly context: PlacesContext,
  ) {}

  get length(): number {
    return this.places.size;
  }

  lengthOf(name: string): number {
    let length = 0;
    for (const { request } of this.places.values()) if (request.name === name) length++;
    return length;
  }

  /**
   * Stands in the queue. Resolves with the tenure, or Busy when the wait time is over.
   * @throws as WaitingLine.join does
   */
  join(request: QueuedRequest): Promise<Tenure | Busy> {
    return new Promise((resolve, reject) => {
      const owner = this.context.nextOwner();
      const place = new QueuePlace(owner, request, this.context, this, (answer) => {
        this.places.delete(owner);
        if ('busy' in answer || answer instanceof Error)
          this.departures.add({ name: request.name, owner, queue: request.queue });
        if (answer instanceof Error) reject(answer);
        else resolve(answer);
      });
      this.places.set(owner, place);
      void place.stand();
    });
  }

  release(tenure: Tenure, keepFor?: number): Promise<boolean | undefined> {
    return this.context.giveBack(tenure, keepFor);
  }

  ended({ name, owner, queue }: Tenure): void {
    // The store hands over by itself.
    this.departures.add({ name, owner, ...(queue && { queue }) });
  }

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
    for (const place of [...this.places.values()]) place.leave(new LockClosedError(place.request.name));
    this.subscription?.close();
  }

  private async subscribe(): Promise<boolean> {
    this.subscription?.close();
    this.subscription = undefined;
    try {
      const subscription = await this.context.store.listen(this.client, (message) => {
        this.hear(message);
      });
      if (this.closed) subscription.close();
      else this.subscription = subscription;
      this.deaf = false;
    } catch {
      // Without messages the places poll; the store's own reports tell of the outage.
      this.deaf = true;
    }
    return this.listening;
  }

  private hear(message: QueueMessage): void {
    const { owner } = message;
    if (owner === undefined) {
      for (const place of this.places.values()) place.lookAgain();
      return;
    }
    const place = this.places.get(owner);
    if (place !== undefined) {
      place.hear(message);
      return;
    }
    const departed = this.departures.of(owner);
    if (departed !== undefined) void this.context.releaser.release(departed, now() + CLAIM);
  }
}
