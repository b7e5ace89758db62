import {
  afterInput,
  awake,
  clearTimer,
  idle,
  monotonicTime,
  setTimer,
  timersAreFaked,
} from '../../../runtime/runtime.js';

/** Something that has to be answered by a moment of the monotonic clock. */
interface Timed {
  readonly end: number;
  isOver: boolean;
}

/** So many entries that are over may stay in the list. */
const FEW = 32;

/**
 * The commands of one connection that have no answer. One timer serves all, and stays armed after the answers: a process that
 * sends thousands of commands in a second would set and clear one for each.
 */
export class Underway<T extends Timed> {
  /** In the order in which they were sent, with some that are over. */
  private sent: T[] = [];
  private count = 0;
  private timer: NodeJS.Timeout | undefined;
  /** Infinity without a timer. */
  private wakesAt = Infinity;
  /** Whether the timer is a fake one. */
  private isFaked = false;

  /** @param onLate is called for one that has no answer in time, and is over now */
  constructor(private readonly onLate: (late: T) => void) {}

  get isEmpty(): boolean {
    return this.count === 0;
  }

  add(one: T, sentAt: number): void {
    this.sent.push(one);
    this.count++;
    const { timer, wakesAt } = this;
    // A timer of another clock may never fire: a test has faked the timers since then, or ended that.
    if (timersAreFaked() !== this.isFaked) this.wakeAt(one.end, sentAt);
    else if (one.end < wakesAt || wakesAt < sentAt) this.wakeAt(Math.min(one.end, wakesAt), sentAt);
    else if (this.count === 1 && timer !== undefined) awake(timer);
  }

  /** @returns false if it was over before */
  over(one: T): boolean {
    if (one.isOver) return false;
    one.isOver = true;
    this.count--;
    if (this.count === 0) {
      this.sent.length = 0;
      // With nothing left to wait for, the timer keeps no process alive.
      if (this.timer !== undefined) idle(this.timer);
    } else if (this.sent.length > 2 * this.count + FEW) {
      this.sent = this.sent.filter(({ isOver }) => !isOver);
    }
    return true;
  }

  private wakeAt(moment: number, present: number): void {
    clearTimer(this.timer);
    this.wakesAt = moment;
    this.isFaked = timersAreFaked();
    const timer = setTimer(() => {
      // Fake timers do not clear a real one.
      if (this.timer === timer) this.onTimer();
    }, moment - present);
    this.timer = timer;
  }

  private onTimer(): void {
    const due = this.wakesAt;
    this.wakesAt = Infinity;
    this.timer = undefined;
    // A process that was busy or stopped finds its timer due before it reads. A reply that has already arrived counts.
    afterInput(() => {
      const present = monotonicTime();
      const late = this.sent.filter(({ isOver, end }) => !isOver && end <= Math.max(present, due));
      for (const one of late) if (this.over(one)) this.onLate(one);
      let next = Infinity;
      for (const { isOver, end } of this.sent) if (!isOver) next = Math.min(next, end);
      if (next < this.wakesAt) this.wakeAt(next, present);
    });
  }
}
