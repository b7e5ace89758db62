import { clearTimer, monotonicTime, random, setTimer } from '../../runtime/runtime.js';
import type { Quorum } from './quorum.js';

/** ms within which the messages of one release arrive. Also the spread of the waits of clients that a minority wakes. */
const APART = 10;
/** Mean pause, ms, between two wake-ups by a minority. */
const REST = 250;

/** One wake-up for the messages of a release: at once with a majority, later and rarely with fewer; see docs/design. */
export class WakeUp {
  /** The members that have sent a message of the same release. */
  private readonly told = new Set<number>();
  /** Whether these have woken the client. A majority may become one only later, when this process learns of a vote. */
  private isWoken = false;
  private timer: NodeJS.Timeout | undefined;
  /** The earliest moment of the next wake-up by a minority. */
  private restsUntil = 0;

  constructor(
    private readonly quorum: Quorum,
    private readonly onWake: () => void,
  ) {}

  tell(member: number): void {
    // A second message of one node belongs to the next release. Of a minority it is no news.
    if (this.told.has(member) && this.isWoken) this.forget();
    this.told.add(member);
    const wakes = !this.isWoken && this.isMajority;
    if (wakes) {
      this.isWoken = true;
      clearTimer(this.timer);
      this.timer = undefined;
      // The first messages of the next release may be counted with these, so its last ones must not wait.
      this.restsUntil = 0;
    }
    this.timer ??= setTimer(this.settle, APART + random() * APART);
    if (wakes) this.onWake();
  }

  private get isMajority(): boolean {
    const { charters, needed } = this.quorum;
    return [...this.told].filter((member) => charters.votes(member)).length >= needed;
  }

  private readonly settle = (): void => {
    this.timer = undefined;
    const rest = this.restsUntil - monotonicTime();
    // Until the rest ends, later messages may complete a majority with the earlier ones.
    if (rest > 0 && !this.isMajority) return void (this.timer = setTimer(this.settle, rest));
    if (!this.isWoken) {
      this.restsUntil = monotonicTime() + REST * (0.5 + random());
      this.onWake();
    }
    this.forget();
  };

  private forget(): void {
    this.told.clear();
    this.isWoken = false;
  }
}
