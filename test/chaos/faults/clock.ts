import { execFileSync } from 'node:child_process';
import { mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type LockModuleOptions, LockService } from 'nestjs-distributed-lock';
import type { Fault } from './fault.js';

const SOURCE = fileURLToPath(new URL('./wall-clock.c', import.meta.url));
const TEN_MINUTES = 600;

/** A wall clock that a server is started with and that can be stepped. The monotonic clock stays. */
export class WallClock {
  private static library: string | undefined;
  private readonly directory = mkdtempSync(join(tmpdir(), 'lock-clock-'));
  private readonly offset = openSync(join(this.directory, 'offset'), 'w');
  readonly env: Record<string, string>;

  private constructor(library: string) {
    this.step(0);
    this.env = { LD_PRELOAD: library, WALL_CLOCK_OFFSET: join(this.directory, 'offset') };
  }

  /** Undefined where no C compiler can make it. */
  static make(): WallClock | undefined {
    try {
      if (process.platform !== 'linux') return undefined;
      if (WallClock.library === undefined) {
        const library = join(mkdtempSync(join(tmpdir(), 'lock-clock-')), 'wall-clock.so');
        execFileSync('cc', ['-shared', '-fPIC', '-O2', '-o', library, SOURCE], { stdio: 'pipe' });
        WallClock.library = library;
      }
      return new WallClock(WallClock.library);
    } catch {
      return undefined;
    }
  }

  /** @param seconds from the real time */
  step(seconds: number): void {
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64LE(BigInt(seconds));
    writeSync(this.offset, bytes, 0, 8, 0);
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
    rmSync(this.directory, { recursive: true });
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
