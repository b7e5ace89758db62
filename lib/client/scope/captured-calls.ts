import { type Captured, capture } from './call-site.js';
import { now } from '../holding/deadline.js';
import { Seen } from '../seen.js';

/** Stacks that are captured at once. */
const MOST = 64;
/**
 * Time, ms, after which one more stack may be captured. A stack costs up to 90 µs in a process that has much code, so a busy loop pays less than
 * 0.1 %.
 */
const PAUSE = 100;

/**
 * Stacks of calls that a report may have to name later. In a busy process, only some calls are captured. After a report
 * of a label lacked its place, all later calls of that label are captured.
 */
export class CapturedCalls {
  private left = MOST;
  private filledAt = now();
  private readonly missed = new Set<string>();
  private readonly told = new Seen();
  private readonly toldWithSite = new Seen();

  /**
   * @param above the public method that was called
   * @param frames number of frames; those of this package come first
   */
  take(label: string, above: (...args: never[]) => unknown, frames: number): Captured | undefined {
    return this.mayTake() || this.missed.has(label) ? capture(above, frames) : undefined;
  }

  /** @returns whether a report of that label is the first one, or the first one with the place of its call */
  isNews(code: string, label: string, site: string | undefined): boolean {
    const key = `${code} ${label}`;
    const isFirst = this.told.add(key);
    if (site !== undefined) return this.toldWithSite.add(key);
    if (this.missed.size < MOST) this.missed.add(label);
    return isFirst;
  }

  /** Whether a report of that label could still add information. */
  mayBeNews(code: string, label: string): boolean {
    return !this.toldWithSite.has(`${code} ${label}`);
  }

  private mayTake(): boolean {
    if (this.left === 0) {
      const time = now();
      this.left = Math.min(MOST, Math.floor((time - this.filledAt) / PAUSE));
      if (this.left > 0) this.filledAt = time;
    }
    if (this.left <= 0) return false;
    this.left--;
    return true;
  }
}
