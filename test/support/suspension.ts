import { fileURLToPath } from 'node:url';
import { PreloadedClock } from './preloaded-clock.js';

const SOURCE = fileURLToPath(new URL('./suspension.c', import.meta.url));

/** What a process on Linux sees of a machine that is suspended and wakes up, without suspending this one. */
export class Suspension {
  private constructor(private readonly clock: PreloadedClock) {}

  /** Undefined where no C compiler can make it. */
  static make(): Suspension | undefined {
    const clock = PreloadedClock.make(SOURCE, 'SUSPENDED_FOR');
    return clock && new Suspension(clock);
  }

  /** For the processes that see it. */
  get env(): Record<string, string> {
    return this.clock.env;
  }

  /** It is over after so many ms, of which the processes have seen nothing. */
  last(ms: number): void {
    this.clock.set(ms);
  }

  remove(): void {
    this.clock.remove();
  }
}
