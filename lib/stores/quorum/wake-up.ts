import { clearTimer, random, setTimer } from '../../lock.runtime.js';
import { quorumOf } from './member.js';

/**
 * How far apart the messages of one release may arrive, ms, and by how much the waits differ of the clients that fewer
 * messages wake.
 */
const APART = 10;

/**
 * Makes one wake-up of the messages that a release sends from every node. The messages of a majority are enough: then a
 * majority is free. Fewer messages may be a release that other members have not received yet, or the retreat of a client
 * that got a minority. A client that gets only these waits for a moment of random length, so that not all clients meet
 * again.
 */
export class WakeUp {
  private readonly told = new Set<number>();
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly members: number,
    private readonly onWake: () => void,
  ) {}

  tell(member: number): void {
    // A second message of one node belongs to the next release.
    if (this.told.has(member)) this.end(this.told.size < quorumOf(this.members));
    this.told.add(member);
    if (this.told.size === 1) {
      this.timer = setTimer(
        () => {
          this.end(this.told.size < quorumOf(this.members));
        },
        APART + random() * APART,
      );
    }
    if (this.told.size === quorumOf(this.members)) this.onWake();
    if (this.told.size === this.members) this.end(false);
  }

  close(): void {
    clearTimer(this.timer);
    this.told.clear();
  }

  private end(wake: boolean): void {
    this.close();
    if (wake) this.onWake();
  }
}
