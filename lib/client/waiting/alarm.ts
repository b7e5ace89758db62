import { clearTimer } from '../../runtime/runtime.js';
import { now, type timerAt } from '../holding/deadline.js';

/** A sleep whose end can be moved while it lasts, and before it begins. */
export class Alarm {
  private moment = Infinity;
  private timer: NodeJS.Timeout | undefined;
  private onChange: (() => void) | undefined;

  constructor(private readonly setTimer: typeof timerAt) {}

  /** Forgets the moment that was set for the sleep before. */
  reset(): void {
    this.moment = Infinity;
  }

  /** Moves the end. The end of an alarm that has been rung stays: it has another reason. */
  set(moment: number): void {
    if (this.moment > 0) this.moment = moment;
    this.onChange?.();
  }

  /** Ends the sleep, or the next one, at once. */
  ring(): void {
    this.moment = 0;
    this.onChange?.();
  }

  /** Sleeps until the moment, unless another one has been set since the last reset, or is set meanwhile. */
  sleepUntil(moment: number): Promise<void> {
    if (this.moment === Infinity) this.moment = moment;
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
