import { clearTimer, monotonicTime, random, setTimer } from '../../runtime/runtime.js';
import { quorumOf } from './member.js';

/** ms within which the messages of one release arrive. Also the spread of the waits of clients that a minority wakes. */
const APART = 10;
/**
 * Longest pause, ms, between two wake-ups by a minority, varied by half of it. The pause doubles with each, until a
 * majority sends messages.
 */
const LONGEST_PAUSE = 500;

/**
 * Makes one wake-up of the messages that a release sends from every node. Messages of a majority suffice, because then
 * a majority is free. Fewer messages may come from a release that other members have not received yet, or from a client
 * that retreats with a minority. After these, the client waits for a random time, so that not all clients collide
 * again, and for longer each time. Otherwise, if a majority holds the lock and a minority does not know it, each client
 * would get the minority and wake the next one by its retreat, for as long as the lock is held. A member without a vote
 * counts for no majority, for the same reason. While the client waits, further members may complete a majority: nodes
 * in several regions send their messages of one release at different times.
 */
export class WakeUp {
  private readonly told = new Set<number>();
  /** The number of voting members among them. */
  private voices = 0;
  /** Runs while messages count as messages of one release. */
  private window: NodeJS.Timeout | undefined;
  /** A scheduled wake-up by a minority. */
  private waking: NodeJS.Timeout | undefined;
  private pause = 0;
  /** The earliest moment of the next wake-up by a minority. */
  private restsUntil = 0;

  constructor(
    private readonly members: number,
    private readonly votes: (member: number) => boolean,
    private readonly onWake: () => void,
  ) {}

  tell(member: number): void {
    if (this.told.has(member)) {
      // A second message of one node belongs to the next release. For a minority it is no news.
      if (!this.isMajority) return;
      this.end();
    }
    this.told.add(member);
    if (this.told.size === 1) this.openWindow();
    if (this.votes(member)) {
      this.voices++;
      if (this.voices === quorumOf(this.members)) this.wake();
    }
  }

  close(): void {
    this.end();
    clearTimer(this.waking);
    this.waking = undefined;
  }

  private get isMajority(): boolean {
    return this.voices >= quorumOf(this.members);
  }

  private openWindow(): void {
    this.window = setTimer(
      () => {
        this.window = undefined;
        if (this.isMajority) this.end();
        else this.wakeForMinority();
      },
      APART + random() * APART,
    );
  }

  private end(): void {
    clearTimer(this.window);
    this.window = undefined;
    this.told.clear();
    this.voices = 0;
  }

  private wake(): void {
    clearTimer(this.waking);
    this.waking = undefined;
    this.pause = 0;
    this.restsUntil = 0;
    // Further messages may belong to the same release.
    if (this.window === undefined) this.openWindow();
    this.onWake();
  }

  /** Until the wake-up, later messages may complete a majority with the earlier ones. */
  private wakeForMinority(): void {
    const now = monotonicTime();
    // After a quiet time, the messages come from no such cycle.
    if (now > this.restsUntil + LONGEST_PAUSE) this.pause = 0;
    this.waking = setTimer(
      () => {
        this.waking = undefined;
        this.end();
        this.pause = Math.min(Math.max(2 * this.pause, APART), LONGEST_PAUSE);
        this.restsUntil = monotonicTime() + this.pause * (0.5 + random());
        this.onWake();
      },
      Math.max(0, this.restsUntil - now),
    );
  }
}
