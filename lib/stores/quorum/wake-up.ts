import { quorumOf } from './member.js';

/** How long the messages of one release may be apart, ms, and by how much those who are woken by fewer differ. */
const APART = 10;

/**
 * Makes one wake-up of the messages that a release sends from every node. A majority of them is enough: then a majority
 * is free. Fewer may be a release that others have not heard of yet, or the retreat of somebody who got a minority; who
 * hears only that waits a moment, each another one, so that they do not all meet again.
 */
export class WakeUp {
  private readonly heard = new Set<number>();
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly members: number,
    private readonly onWake: () => void,
  ) {}

  hear(member: number): void {
    // A second message of one node belongs to the next release.
    if (this.heard.has(member)) this.end(this.heard.size < quorumOf(this.members));
    this.heard.add(member);
    if (this.heard.size === 1) {
      this.timer = setTimeout(
        () => {
          this.end(this.heard.size < quorumOf(this.members));
        },
        APART + Math.random() * APART,
      );
    }
    if (this.heard.size === quorumOf(this.members)) this.onWake();
    if (this.heard.size === this.members) this.end(false);
  }

  close(): void {
    clearTimeout(this.timer);
    this.heard.clear();
  }

  private end(wake: boolean): void {
    this.close();
    if (wake) this.onWake();
  }
}
