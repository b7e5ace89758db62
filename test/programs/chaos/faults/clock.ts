import { fileURLToPath } from 'node:url';
import { type LockModuleOptions, LockService } from 'nestjs-distributed-lock';
import { PreloadedClock } from '../../../support/preloaded-clock.js';
import type { Fault } from './fault.js';

const SOURCE = fileURLToPath(new URL('./wall-clock.c', import.meta.url));
const TEN_MINUTES = 600;

/** A wall clock that a server is started with and that can be stepped. The monotonic clock stays. */
export class WallClock {
  private constructor(private readonly clock: PreloadedClock) {}

  /** Undefined where no C compiler can make it. */
  static make(): WallClock | undefined {
    const clock = PreloadedClock.make(SOURCE, 'WALL_CLOCK_OFFSET');
    return clock && new WallClock(clock);
  }

  get env(): Record<string, string> {
    return this.clock.env;
  }

  /** @param seconds from the real time */
  step(seconds: number): void {
    this.clock.set(seconds);
  }

  /** To a server that counts a lease by its wall clock, a step forward is the end of every lease. */
  faults(url: string, keyPrefix: string): Fault[] {
    return (
      [
        ['forward', TEN_MINUTES],
        ['back', -TEN_MINUTES],
      ] as const
    ).map(([where, seconds]) => ({
      name: `server clock stepped ${where} and returned`,
      group: 'server clock',
      severity: 'loss',
      lasts: [200, 1_500],
      apart: 'clock',
      strike: async ({ locks }) => {
        this.step(seconds);
        return async () => {
          this.step(0);
          await freeTheFuture({ connection: url, keyPrefix }, locks);
        };
      },
    }));
  }

  remove(): void {
    this.clock.remove();
  }
}

/**
 * What an administrator does when the clock has gone back: a hold whose owner is gone, or believes that it has run
 * out, would last until the clock is where it was.
 */
async function freeTheFuture(options: LockModuleOptions, locks: readonly string[]): Promise<void> {
  const service = new LockService(options);
  try {
    for (const lock of locks) {
      const state = await service.inspect(lock);
      if (state !== null && state.remainingTime > 60_000) await service.forceRelease(lock);
    }
  } finally {
    await service.onApplicationShutdown();
  }
}
