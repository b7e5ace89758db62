import type { Asker } from '../../api/asker.js';
import { timeSuspended } from '../../runtime/clock.js';
import { StandingTimer } from '../../runtime/standing-timer.js';
import { TransientMap } from '../../store/transient-map.js';
import { LastEntries } from '../last-entries.js';
import type { LockClient } from '../lock-client.js';
import { now } from './deadline.js';
import type { Tenure } from './tenure.js';

/** Age, ms, at which a hold is worth a subscription to messages about it. Most holds end before. */
const LONG = 1_000;
/**
 * Owners without a hold in this process, at least, that are remembered from messages about lost holds. A grant may be on
 * its way to one of them, but most of them have just released.
 */
const UNKNOWN = 1_000;
/** Pause before a failed subscription is tried again, ms. */
const RETRY = 10_000;

/**
 * Detects holds that end without a reply to their holders, with one timer for all holds. When a hold has lasted for 1
 * s, the client subscribes to the messages of the store, which report holds that were released by force. A message is
 * only a hint: the client asks the store, and the answer decides. The client also asks once when the subscription
 * begins, because it has missed earlier messages. The timer also detects that the machine was suspended.
 */
export class HoldWatch {
  private readonly timer: StandingTimer;
  /** Owners that have lost a hold according to a message, with the service that forced it. */
  private suspects = new Map<string, Asker | undefined>();
  /** Owners without a hold here when the message came: it may have overtaken the reply that grants the hold. */
  private readonly unknown = new LastEntries<string, Asker | undefined>(UNKNOWN);
  /** The begin of the subscription. Messages about holds that were requested before may have been missed. */
  private subscribedSince = -Infinity;

  /** The leases that callers of `acquire` have got since the last check. */
  byHand = new TransientMap<{ onLongHold(): void }, true>();
  /** ms of suspension of the machine until the last check. */
  private suspended = 0;
  /** The earliest moment of the next try to subscribe. */
  private retryAt = -Infinity;

  constructor(private readonly client: LockClient) {
    this.timer = new StandingTimer(
      (moment, callback) => client.setTimer(moment, callback),
      () => {
        this.round();
      },
    );
  }

  begun(tenure: Tenure): void {
    const { owner, grantedAt } = tenure;
    this.timer.set(grantedAt + LONG, grantedAt);
    const forced = this.unknown.get(owner);
    if (this.unknown.delete(owner) || grantedAt < this.subscribedSince) this.onLost(owner, forced);
  }

  ended(): void {
    if (this.client.tenures.isEmpty) this.timer.rest();
  }

  /** Handles a message that an owner has lost its hold. @param forced the service that took the lock */
  onLost(owner: string, forced?: Asker): void {
    this.suspects.set(owner, forced ?? this.suspects.get(owner));
    if (this.suspects.size > 1) return;
    // Deferred, so that messages of the same moment share one question.
    void Promise.resolve().then(() => {
      const { suspects } = this;
      this.suspects = new Map();
      const suspected = this.client.tenures.all.filter((tenure) => suspects.has(tenure.owner));
      for (const tenure of suspected) tenure.forced = suspects.get(tenure.owner);
      for (const { owner } of suspected) suspects.delete(owner);
      for (const [owner, forced] of suspects) this.unknown.set(owner, forced);
      if (suspected.length > 0) this.look(suspected);
    });
  }

  /** The store has lost messages, and perhaps the subscription. */
  missed(): void {
    this.retryAt = -Infinity;
    if (this.client.queueMessages.isSubscribed) this.subscribed();
  }

  /** The subscription is active. One question finds the holds that were lost before. */
  subscribed(): void {
    this.subscribedSince = now();
    if (!this.client.tenures.isEmpty) this.look(this.client.tenures.all);
  }

  private look(tenures: readonly Tenure[]): void {
    const told = tenures.map(({ forced }) => forced);
    this.client.watchdog.look(tenures).forEach((answer, index) => {
      const tenure = tenures[index];
      answer.then(
        () => {
          // If the store still has the hold, the message was wrong. A newer message waits for its own answer.
          if (tenure?.forced !== undefined && tenure.forced === told[index]) tenure.forced = undefined;
        },
        // If the store does not answer, the watchdog asks again in its next round.
        () => undefined,
      );
    });
  }

  private round(): void {
    const suspended = timeSuspended();
    if (suspended > this.suspended) {
      this.suspended = suspended;
      // The suspension has delayed all timers.
      for (const tenure of this.client.tenures.all) tenure.catchUp();
      this.client.watchdog.catchUp();
    }
    if (this.client.tenures.isEmpty) return;
    const time = now();
    // Leases that are too short for the watchdog never get that old.
    const age = time - (this.client.watchdog.oldestGrant ?? time);
    if (age >= LONG) {
      this.client.labels.keep();
      for (const lease of this.byHand.keys()) lease.onLongHold();
      this.byHand = new TransientMap();
    }
    if (age >= LONG && time >= this.retryAt && !this.client.queueMessages.isSubscribed) {
      this.retryAt = time + RETRY;
      void this.client.queueMessages.subscribe();
    }
    this.timer.set(time + (age < LONG ? LONG - age : LONG), time);
  }
}
