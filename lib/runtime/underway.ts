import { afterInput } from './runtime.js';
import { StandingTimer } from './standing-timer.js';

/** Something that has to be over by a moment. */
interface Timed {
  readonly end: number;
  isOver: boolean;
}

/** So many entries that are over may stay in the list while others are not. */
const FEW = 32;
/** The first entry of each list, because an empty array gets new room with its next entry. */
const OVER: Timed = { end: Infinity, isOver: true };

/** Commands without an answer, or waits that have just begun. One timer serves all. */
export class Underway<T extends Timed> {
  /** In the order in which they began, with some that are over. */
  private begun: (T | typeof OVER)[] = [OVER];
  private count = 0;
  private readonly timer: StandingTimer;

  /**
   * @param clock that tells the moments
   * @param setTimer for a moment of that clock
   * @param onLate is called for one whose moment has come, and is over now
   */
  constructor(
    private readonly clock: () => number,
    setTimer: (moment: number, callback: () => void) => NodeJS.Timeout,
    private readonly onLate: (late: T) => void,
  ) {
    this.timer = new StandingTimer(setTimer, (due) => {
      // A process that was busy or stopped finds its timer due before it reads. A reply that has already arrived counts.
      afterInput(() => {
        this.look(due);
      });
    });
  }

  get isEmpty(): boolean {
    return this.count === 0;
  }

  add(one: T, present: number): void {
    this.begun.push(one);
    this.count++;
    this.timer.set(one.end, present);
  }

  /** @returns false if it was over before */
  over(one: T): boolean {
    if (one.isOver) return false;
    one.isOver = true;
    this.count--;
    if (this.count === 0) {
      this.begun.length = 1;
      this.timer.rest();
    } else if (this.begun.length > 2 * this.count + FEW) {
      this.begun = this.begun.filter((each) => !each.isOver || each === OVER);
    }
    return true;
  }

  private look(due: number): void {
    const present = this.clock();
    const late = this.begun.filter(({ isOver, end }) => !isOver && end <= Math.max(present, due));
    for (const one of late as T[]) if (this.over(one)) this.onLate(one);
    let next = Infinity;
    for (const { isOver, end } of this.begun) if (!isOver) next = Math.min(next, end);
    if (next < Infinity) this.timer.set(next, present);
  }
}
