import { clearTimer, monotonicTime, random, setTimer } from '../../runtime/runtime.js';
import { quorumOf } from './member.js';

/**
 * How far apart the messages of one release may arrive, ms, and by how much the waits differ of the clients that fewer
 * messages wake.
 */
const APART = 10;
/**
 * The longest time between two wake-ups by a minority, ms, more or less by a random half of it. The time doubles with each
 * one, as long as no majority sends messages.
 */
const LONGEST_PAUSE = 500;

/**
 * Makes one wake-up of the messages that a release sends from every node. The messages of a majority are enough: then a
 * majority is free. Fewer messages may be a release that other members have not received yet, or the retreat of a client
 * that got a minority. A client that gets only these waits for a moment of random length, so that not all clients meet
 * again. And it waits longer each time: where a majority holds the lock and a minority does not know it, each client that
 * asks gets that minority, and its retreat would wake the next one for as long as the lock is held. A member that does not
 * vote counts for no majority, for the same reason. While the client waits, further members may complete a majority: of
 * nodes in several regions, each sends its message of one release at another time.
 */
export class WakeUp {
  private readonly told = new Set<number>();
  /** How many of them vote. */
  private voices = 0;
  /** While this timer runs, messages count as those of one release. */
  private window: NodeJS.Timeout | undefined;
  /** A wake-up by a minority that is still to come. */
  private waking: NodeJS.Timeout | undefined;
  private pause = 0;
  /** No wake-up by a minority before that. */
  private restsUntil = 0;

  constructor(
    private readonly members: number,
    private readonly votes: (member: number) => boolean,
    private readonly onWake: () => void,
  ) {}

  tell(member: number): void {
    if (this.told.has(member)) {
      // A second message of one node belongs to the next release. Of a minority it tells nothing new.
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
    // The messages that follow may still be of this release.
    if (this.window === undefined) this.openWindow();
    this.onWake();
  }

  /** Until then, messages that come later make a majority together with those before. */
  private wakeForMinority(): void {
    const now = monotonicTime();
    // The clients have been quiet: this is no circle.
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
