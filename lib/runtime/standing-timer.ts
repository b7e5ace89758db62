import { awake, clearTimer, idle, timersAreFaked } from './runtime.js';

/**
 * A timer that stays armed while there is nothing to wait for. A process that begins and ends thousands of waits in a second
 * would set and clear one for each.
 */
export class StandingTimer {
  private timer: NodeJS.Timeout | undefined;
  private moment = Infinity;
  /** Whether the timer is a fake one. */
  private isFaked = false;
  private keepsAlive = false;

  /**
   * @param setTimer for a moment of the clock
   * @param onTimer is called at the moment, or earlier
   */
  constructor(
    private readonly setTimer: (moment: number, callback: () => void) => NodeJS.Timeout,
    private readonly onTimer: (moment: number) => void,
  ) {}

  /** Calls back at the moment, or at an earlier one that was set before. */
  set(moment: number, present: number): void {
    const { timer } = this;
    // A timer of another clock may never fire: a test has faked the timers since then, or ended that.
    if (timersAreFaked() !== this.isFaked) this.arm(moment);
    else if (moment < this.moment || this.moment < present) this.arm(Math.min(moment, this.moment));
    else if (this.keepsAlive && timer !== undefined) awake(timer);
  }

  /** With nothing left to wait for, the timer keeps no process alive. Code of tests counts fake timers. */
  rest(): void {
    if (this.isFaked) this.clear();
    else if (this.timer !== undefined) idle(this.timer);
  }

  clear(): void {
    clearTimer(this.timer);
    this.timer = undefined;
    this.moment = Infinity;
  }

  private arm(moment: number): void {
    clearTimer(this.timer);
    this.moment = moment;
    this.isFaked = timersAreFaked();
    const timer = this.setTimer(moment, () => {
      // Fake timers do not clear a real one.
      if (this.timer !== timer) return;
      this.timer = undefined;
      this.moment = Infinity;
      this.onTimer(moment);
    });
    this.timer = timer;
    // A timer of a browser is a number.
    this.keepsAlive = (timer as Partial<NodeJS.Timeout>).hasRef?.() === true;
  }
}
