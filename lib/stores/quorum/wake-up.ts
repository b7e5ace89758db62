import { clearTimer, monotonicTime, random, setTimer } from '../../runtime/runtime.js';
import { quorumOf } from './member.js';

/** ms within which the messages of one release arrive. Also the spread of the waits of clients that a minority wakes. */
const APART = 10;
/** Mean pause, ms, between two wake-ups by a minority. */
const REST = 250;

/**
 * Makes one wake-up of the messages that a release sends from every node. Messages of a majority suffice, because then
 * a majority is free. Fewer messages may come from a release that other members have not received yet, or from a client
 * that retreats with a minority. After these, the client waits for a random time, so that not all clients collide
 * again, and then rests. Otherwise, if a majority holds the lock and a minority does not know it, each client would get
 * the minority and wake the next one by its retreat, for as long as the lock is held. A member without a vote counts for
 * no majority, for the same reason.
 */
export class WakeUp {
  /** The members that have sent a message of the same release. Nodes in several regions send theirs at different times. */
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
    if (isWoken) this.close();
    this.timer ??= setTimer(this.settle, APART + random() * APART);
    if (isWoken) this.onWake();
  }

  close(): void {
    clearTimer(this.timer);
    this.timer = undefined;
  }

  private get isMajority(): boolean {
    return [...this.told].filter((member) => this.votes(member)).length >= quorumOf(this.members);
  }

  private readonly settle = (): void => {
    this.timer = undefined;
    const time = monotonicTime();
    const isMinority = !this.isMajority;
    // Until the rest ends, later messages may complete a majority with the earlier ones.
    if (isMinority && time < this.restsUntil) {
      this.timer = setTimer(this.settle, this.restsUntil - time);
      return;
    }
    this.told.clear();
    if (isMinority) {
      this.restsUntil = time + REST * (0.5 + random());
      this.onWake();
    }
  };
}
