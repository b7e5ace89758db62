import { LockClosedError } from '../lock.errors.js';
import { CLAIM, type ReleaseReply } from '../stores/lock-store.js';
import { now } from './deadline.js';
import { Departures } from './departures.js';
import type { Ear } from './inbox.js';
import { type PlaceMessage, type PlacesContext, type QueuedRequest, QueuePlace } from './queue-place.js';
import type { Tenure } from './tenure.js';
import type { Busy, TenureKeeper } from './waiting.js';

/**
 * The places of one client in the queues of the store. Every waiter stands in the store's queue from its arrival, for
 * the order across processes is the promise; the store tells when its turn has come. Each also looks again by itself,
 * at the time that the store has named: a message may be lost.
 */
export class QueuePlaces implements TenureKeeper {
  private readonly places = new Map<string, QueuePlace>();
  private readonly departures = new Departures();
  /** The exclusive holds, by name. */
  private readonly exclusive = new Map<string, Tenure>();

  constructor(
    private readonly ear: Ear,
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
      const place = new QueuePlace(owner, request, this.context, this.ear, (answer) => {
        this.places.delete(owner);
        if ('busy' in answer || answer instanceof Error) this.departed(owner, request);
        if (answer instanceof Error) reject(answer);
        else resolve(answer);
      });
      this.places.set(owner, place);
      void place.stand();
    });
  }

  /** The store has granted a hold. One of this process that would have kept it out is gone. */
  begun(tenure: Tenure, beside: string | undefined): void {
    const { name, queue, fencingToken } = tenure;
    const former = this.exclusive.get(name);
    // The answers may come in another order than the grants.
    const isGone = former !== undefined && former.owner !== beside && former.fencingToken < fencingToken;
    if (queue?.mode === 'exclusive') this.exclusive.set(name, tenure);
    if (isGone) former.lose('taken');
  }

  release(tenure: Tenure, keepFor?: number): Promise<ReleaseReply | undefined> {
    return this.context.giveBack(tenure, keepFor);
  }

  ended(tenure: Tenure): void {
    const { name, owner } = tenure;
    if (this.exclusive.get(name) === tenure) this.exclusive.delete(name);
    // The store hands over by itself.
    this.departed(owner, tenure);
  }

  sendAway(refused: (request: QueuedRequest) => boolean): void {
    for (const place of [...this.places.values()])
      if (refused(place.request)) place.leave(new LockClosedError(place.request.name));
  }

  hear(message: PlaceMessage): void {
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

  private departed(owner: string, { name, terms, queue }: Pick<Tenure, 'name' | 'terms' | 'queue'>): void {
    this.departures.add({ name, owner, leaseTime: this.context.initialLease(terms), queue });
  }
}
