import { CLAIM, type ReleaseRequest } from '../stores/lock-store.js';
import type { Releaser } from '../stores/releaser.js';
import { now } from './deadline.js';
import { Departures } from './departures.js';
import type { Place, PlaceMessage } from './place.js';
import type { Tenure } from './tenure.js';

/**
 * The places of one client in the queues of the store, and its exclusive holds of the kinds whose callers each have one. The
 * store tells the client when the turn of one has come.
 */
export class Places {
  /** By the owner that each had at first. On a store without queues it has others later, which no message is for. */
  private readonly places = new Map<string, Place>();
  private readonly owners = new Map<Place, string>();
  private readonly departures = new Departures();
  /** By name. */
  private readonly exclusive = new Map<string, Tenure>();

  constructor(private readonly releaser: Pick<Releaser, 'release'>) {}

  add(place: Place): void {
    this.places.set(place.owner, place);
    this.owners.set(place, place.owner);
  }

  /** It is granted, or has been left. */
  remove(place: Place): void {
    const owner = this.owners.get(place);
    if (owner === undefined) return;
    this.owners.delete(place);
    this.places.delete(owner);
    if (!place.isGranted) this.departures.add(place.departure);
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
    if (departed === undefined) return;
    // What has been granted to it is the lease that it asked for, or a claim.
    void this.releaser.release(departed, now() + Math.max(departed.leaseTime ?? 0, CLAIM));
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

  ended(tenure: Tenure): void {
    if (this.exclusive.get(tenure.name) === tenure) this.exclusive.delete(tenure.name);
  }

  departed(departure: ReleaseRequest): void {
    this.departures.add(departure);
  }
}
