import { clearTimer } from '../../runtime/runtime.js';
import { now, type timerAt } from '../holding/deadline.js';

/** A sleep whose end can be set before and during the sleep. */
export class Alarm {
  private moment = Infinity;
  private timer: NodeJS.Timeout | undefined;
  private onChange: (() => void) | undefined;

  constructor(private readonly setTimer: typeof timerAt) {}

  /** Forgets the moment that was set for the last sleep. */
  reset(): void {
    this.moment = Infinity;
  }

  /** Moves the end of the sleep, unless the alarm has been rung: it ends at once for a reason of its own. */
  set(moment: number): void {
    if (this.moment > 0) this.moment = moment;
    this.onChange?.();
  }

  /** Ends the present or the next sleep at once. */
  ring(): void {
    this.moment = 0;
    this.onChange?.();
  }

  /** Sleeps until the moment, or until an earlier one that was set since the last reset. */
  sleepUntil(moment: number): Promise<void> {
    this.moment = Math.min(this.moment, moment);
    return new Promise((resolve) => {
      this.onChange = () => {
        clearTimer(this.timer);
        if (now() >= this.moment) {
          this.onChange = undefined;
          resolve();
        } else {
          this.timer = this.setTimer(this.moment, () => this.onChange?.());
        }
      };
      this.onChange();
    });
  }
}
