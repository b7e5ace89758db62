import type { Asker } from '../../api/asker.js';
import { timeSuspended } from '../../runtime/clock.js';
import { clearTimer } from '../../runtime/runtime.js';
import { oldestBeyond } from '../../store/oldest-beyond.js';
import { now, type timerAt } from './deadline.js';
import type { Messages } from '../waiting/message-subscription.js';
import type { Tenure } from './tenure.js';
import type { Tenures } from './tenures.js';

/** How long a hold lasts before messages about it are worth a subscription, ms. Most holds are over by then. */
const LONG = 1_000;
/**
 * How many owners are remembered that have no hold here when a message says that a hold is lost. A grant may take its time.
 * For most of these owners the hold has just ended.
 */
const MOST_UNKNOWN = 1_000;
/** When a subscription that failed is tried again, ms. */
const RETRY = 10_000;

/**
 * Notices holds that end without a message to their holders, with one timer for all holds. The client subscribes to the
 * messages of the store as soon as one hold has lasted for a second: they tell which holds have been taken away by force. A
 * message is a hint: the store is asked, and its answer decides. The store is also asked once when the subscription begins,
 * because earlier messages have been missed. The timer also notices that the machine has been suspended.
 */
export class HoldWatch {
  private timer: NodeJS.Timeout | undefined;
  /** The owners of which a message has said that they have lost a hold, and to which service. */
  private suspects = new Map<string, Asker | undefined>();
  /**
   * Owners that had no hold here when such a message came. The message may have overtaken the reply that grants the hold.
   */
  private readonly unknown = new Map<string, Asker | undefined>();
  /** When the subscription began. A message about a hold that was asked for before may have been missed. */
  private subscribedSince = -Infinity;

  /** ms for which the machine had been suspended at the last check. */
  private suspended = 0;
  /** The subscription is not tried again before this moment. */
  private retryAt = -Infinity;

  constructor(
    private readonly tenures: Pick<Tenures, 'all' | 'oldest' | 'size'>,
    private readonly messages: Messages,
    /** Asks the store, and ends the tenures that are gone. */
    private readonly ask: (tenures: readonly Tenure[]) => readonly Promise<void>[],
    /** The machine has been suspended: timers are late by that time. */
    private readonly onSuspension: () => void,
    private readonly setTimer: typeof timerAt,
    /** Called once a second while a hold has lasted for longer. */
    private readonly onLongHold: () => void = () => undefined,
  ) {}

  /** A hold has begun. */
  begun(tenure: Tenure): void {
    if (this.timer === undefined) this.wakeIn(LONG);
    const { owner, grantedAt } = tenure;
    const forced = this.unknown.get(owner);
    if (this.unknown.delete(owner) || grantedAt < this.subscribedSince) this.onLost(owner, forced);
  }

  /** A hold is over. */
  ended(): void {
    if (this.tenures.size > 0) return;
    clearTimer(this.timer);
    this.timer = undefined;
  }

  /** The store says that this owner has lost a hold, and to which service. */
  onLost(owner: string, forced?: Asker): void {
    this.suspects.set(owner, forced ?? this.suspects.get(owner));
    if (this.suspects.size > 1) return;
    // Together with the owners of messages that come at the same time.
    void Promise.resolve().then(() => {
      const { suspects } = this;
      this.suspects = new Map();
      const suspected = this.tenures.all.filter((tenure) => suspects.has(tenure.owner));
      for (const tenure of suspected) tenure.forced = suspects.get(tenure.owner);
      for (const { owner } of suspected) suspects.delete(owner);
      for (const [owner, forced] of suspects) this.keep(owner, forced);
      if (suspected.length > 0) this.look(suspected);
    });
  }

  /** Messages may have been missed, and the subscription may have ended. */
  missed(): void {
    this.retryAt = -Infinity;
    if (this.messages.isSubscribed) this.subscribed();
  }

  /** The subscription is active from now on. One look finds a hold that was taken away before. */
  subscribed(): void {
    this.subscribedSince = now();
    if (this.tenures.size > 0) this.look(this.tenures.all);
  }

  private look(tenures: readonly Tenure[]): void {
    const told = tenures.map(({ forced }) => forced);
    this.ask(tenures).forEach((answer, index) => {
      const tenure = tenures[index];
      answer.then(
        () => {
          // Where it is held, the message was wrong. One that has come since is for the next answer to confirm.
          if (tenure?.forced !== undefined && tenure.forced === told[index]) tenure.forced = undefined;
        },
        // A tenure that gets no answer is looked at again with the watchdog's next round.
        () => undefined,
      );
    });
  }

  private keep(owner: string, forced: Asker | undefined): void {
    this.unknown.set(owner, forced);
    const oldest = oldestBeyond(MOST_UNKNOWN, this.unknown);
    if (oldest !== undefined) this.unknown.delete(oldest);
  }

  private wakeIn(time: number): void {
    this.timer = this.setTimer(now() + time, () => {
      this.timer = undefined;
      this.round();
    });
  }

  private round(): void {
    const suspended = timeSuspended();
    if (suspended > this.suspended) {
      this.suspended = suspended;
      this.onSuspension();
    }
    const { oldest } = this.tenures;
    if (oldest === undefined) return;
    const time = now();
    const age = time - oldest.grantedAt;
    if (age >= LONG) this.onLongHold();
    if (age >= LONG && time >= this.retryAt && !this.messages.isSubscribed) {
      this.retryAt = time + RETRY;
      void this.messages.subscribe();
    }
    clearTimer(this.timer);
    this.wakeIn(age < LONG ? LONG - age : LONG);
  }
}
