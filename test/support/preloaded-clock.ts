import { execFileSync } from 'node:child_process';
import { mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';

/** The libraries that have been compiled, by their source. */
const libraries = new Map<string, string>();

/**
 * A library that is preloaded into a process and bends its clocks, by a number in a file that the process has mapped:
 * each new number is in effect at once.
 */
export class PreloadedClock {
  private readonly directory = mkdtempSync(join(tmpdir(), 'lock-clock-'));
  private readonly file = openSync(join(this.directory, 'number'), 'w');
  /** For the processes whose clocks it bends. */
  readonly env: Record<string, string>;

  private constructor(library: string, variable: string) {
    this.env = { LD_PRELOAD: library, [variable]: join(this.directory, 'number') };
    this.set(0);
  }

  /**
   * @param source of the library, in C
   * @param variable in which the library finds the path of the file
   * @returns undefined where no C compiler can make it
   */
  static make(source: string, variable: string): PreloadedClock | undefined {
    try {
      return process.platform === 'linux' ? new PreloadedClock(libraryOf(source), variable) : undefined;
    } catch {
      return undefined;
    }
  }

  set(number: number): void {
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64LE(BigInt(number));
    writeSync(this.file, bytes, 0, 8, 0);
  }

  remove(): void {
    rmSync(this.directory, { recursive: true });
  }
}

function libraryOf(source: string): string {
  let library = libraries.get(source);
  if (library === undefined) {
    library = join(mkdtempSync(join(tmpdir(), 'lock-clock-')), `${basename(source, '.c')}.so`);
    execFileSync('cc', ['-shared', '-fPIC', '-O2', '-o', library, source, '-ldl'], { stdio: 'pipe' });
    libraries.set(source, library);
  }
  return library;
}
