import { timeSuspended } from '../lock.clock.js';
import { now, type timerAt } from './deadline.js';
import type { QueueMessages } from './queue-subscription.js';
import type { Tenure } from './tenure.js';

/** How long a hold lasts before messages about it are worth a subscription, ms: most are over by then. */
const LONG = 1_000;
/** How many such owners without a hold here are remembered. A grant may take its time; of most the hold has just ended. */
const MOST_UNKNOWN = 1_000;
/** When messages that could not be asked for are asked for again, ms. */
const RETRY = 10_000;

/**
 * Notices what ends holds without a word to their holders, with one timer for all holds. The messages of the store are asked
 * for as soon as one hold has lasted for a second: they tell which have been taken away by force. A message is a hint: the
 * store is asked, and its answer decides. It is also asked once when messages begin to be heard, because those before that
 * have been missed. And the machine may have been suspended.
 */
export class HoldWatch {
  private timer: NodeJS.Timeout | undefined;
  /** The owners of which a message has said that they have lost a hold. */
  private suspects = new Set<string>();
  /** Owners that had no hold here when such a message came: it may have overtaken the reply that grants theirs. */
  private readonly unknown = new Set<string>();
  /** Of a hold that was asked for before, a message may have been missed. */
  private heardSince = -Infinity;

  /** ms for which the machine had been suspended when that was last looked at. */
  private suspended = 0;
  /** Before that messages are not asked for again. */
  private retryAt = -Infinity;

  constructor(
    /** The oldest first. */
    private readonly tenures: ReadonlyMap<Tenure, unknown>,
    private readonly ear: QueueMessages,
    /** Asks the store, and ends those that are gone. */
    private readonly look: (tenures: readonly Tenure[]) => void,
    /** The machine has been suspended: timers are late by that. */
    private readonly onSuspension: () => void,
    private readonly setTimer: typeof timerAt,
  ) {}

  /** A hold has begun. */
  begun(tenure: Tenure): void {
    if (this.timer === undefined) this.wakeIn(LONG);
    const { owner, grantedAt } = tenure;
    if (this.unknown.delete(owner) || grantedAt < this.heardSince) this.hear(owner);
  }

  /** A hold is over. */
  ended(): void {
    if (this.tenures.size > 0) return;
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  /** The store says that this owner has lost a hold. */
  hear(owner: string): void {
    this.suspects.add(owner);
    if (this.suspects.size > 1) return;
    // Together with those of which messages have come at the same time.
    void Promise.resolve().then(() => {
      const { suspects } = this;
      this.suspects = new Set();
      const suspected = [...this.tenures.keys()].filter((tenure) => suspects.has(tenure.owner));
      for (const { owner } of suspected) suspects.delete(owner);
      for (const owner of suspects) this.keep(owner);
      if (suspected.length > 0) this.look(suspected);
    });
  }

  /** Messages may have been missed, and may not be heard any more. */
  missed(): void {
    this.retryAt = -Infinity;
    if (this.ear.listening) this.listening();
  }

  /** Messages are heard from now on. A hold that was taken away before is found by one look. */
  listening(): void {
    this.heardSince = now();
    if (this.tenures.size > 0) this.look([...this.tenures.keys()]);
  }

  private keep(owner: string): void {
    this.unknown.add(owner);
    if (this.unknown.size <= MOST_UNKNOWN) return;
    for (const oldest of this.unknown) {
      this.unknown.delete(oldest);
      return;
    }
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
    const [oldest] = this.tenures.keys();
    if (oldest === undefined) return;
    const time = now();
    const age = time - oldest.grantedAt;
    if (age >= LONG && time >= this.retryAt && !this.ear.listening) {
      this.retryAt = time + RETRY;
      void this.ear.listen();
    }
    clearTimeout(this.timer);
    this.wakeIn(age < LONG ? LONG - age : LONG);
  }
}
