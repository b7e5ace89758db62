import { clearTimer, monotonicTime, random, setTimer } from '../../runtime/runtime.js';
import { quorumOf } from './member.js';

/** ms within which the messages of one release arrive. Also the spread of the waits of clients that a minority wakes. */
const APART = 10;
/** Mean pause, ms, between two wake-ups by a minority. */
const REST = 250;

/**
 * Makes one wake-up of the messages that a release sends from every node: at once if a majority with a vote has sent one,
 * after a random time and more rarely for fewer. See "Waiting" in docs/design/redlock.md.
 */
export class WakeUp {
  /** The members that have sent a message of the same release. */
  private readonly told = new Set<number>();
  private timer: NodeJS.Timeout | undefined;
  /** The earliest moment of the next wake-up by a minority. */
  private restsUntil = 0;

  constructor(
    private readonly members: number,
    private readonly votes: (member: number) => boolean,
    private readonly onWake: () => void,
  ) {}

  tell(member: number): void {
    const before = this.isMajority;
    // A second message of one node belongs to the next release. Of a minority it is no news.
    if (this.told.has(member) && before) this.told.clear();
    this.told.add(member);
    const isWoken = this.isMajority && !before;
    if (isWoken) {
      this.close();
      // The first messages of the next release may be counted with these, so its last ones must not wait.
      this.restsUntil = 0;
    }
    this.timer ??= setTimer(this.settle, APART + random() * APART);
    if (isWoken) this.onWake();
  }

  close(): void {
    clearTimer(this.timer);
    this.timer = undefined;
  }

  private get isMajority(): boolean {
    return [...this.told].filter(this.votes).length >= quorumOf(this.members);
  }

  private readonly settle = (): void => {
    this.timer = undefined;
    const rest = this.isMajority ? 0 : this.restsUntil - monotonicTime();
    // Until the rest ends, later messages may complete a majority with the earlier ones.
    if (rest > 0) {
      this.timer = setTimer(this.settle, rest);
      return;
    }
    const isMinority = !this.isMajority;
    this.told.clear();
    if (!isMinority) return;
    this.restsUntil = monotonicTime() + REST * (0.5 + random());
    this.onWake();
  };
}
