import { msUntil, now } from '../core/deadline.js';

/** For how long a store that does not answer may keep the locks that are held already from others, ms. */
const SILENCE = 250;

/** For how long one attempt at several locks waits. */
export class WaitLimits {
  private readonly began = now();
  private grantedAt: number | undefined;

  /**
   * @param until when the caller's wait time is over, on the monotonic clock
   * @param hold for how long the rest is waited for while some locks are held, ms; 0 not at all
   */
  constructor(
    readonly until: number,
    private readonly hold: number,
    /** The lock of a group that is waited for before the others are asked for. */
    readonly first?: string,
    /** When the caller asked, on the monotonic clock. */
    readonly askedAt = now(),
  ) {}

  /** Whether locks are held while others are waited for. */
  get holds(): boolean {
    return this.hold > 0;
  }

  /** For how long the first lock was waited for, ms. */
  get waited(): number {
    return (this.grantedAt ?? now()) - this.began;
  }

  /** ms for which a lock that is busy may be waited for now. */
  get forLock(): number {
    return msUntil(Math.min(this.until, (this.grantedAt ?? Infinity) + this.hold));
  }

  /** ms for which an answer of the store may be waited for now. 0 for a caller that does not wait: as long as the store takes. */
  get forStore(): number {
    if (this.until <= this.askedAt) return 0;
    const silence = Math.max(this.hold, SILENCE);
    return Math.max(1, msUntil(Math.min(this.until, (this.grantedAt ?? Infinity) + silence)));
  }

  /** For a lock that is asked for by itself. */
  get forOne(): { readonly waitTime: number; readonly answerTime: number } {
    return { waitTime: this.forLock, answerTime: this.forStore };
  }

  /** Something is held from now on. */
  granted(): void {
    this.grantedAt ??= now();
  }
}
