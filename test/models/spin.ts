import { execFile, spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const TIMEOUT = 600_000;

const missing = [
  ['spin', '-V'],
  ['cc', '--version'],
].filter(([program = '', ...args]) => spawnSync(program, args).status !== 0);

/** Why no model can be checked here; '' where they can. */
export const skipped =
  missing.length === 0 ? '' : ` (skipped: needs ${missing.map(([program]) => program).join(' and ')})`;

/** What Spin has found. */
export interface Verdict {
  readonly errors: number;
  /** The assertion that fails, as Spin prints it. */
  readonly violation: string | undefined;
  /** How many states have been stored. */
  readonly states: number;
  /** All states have been looked at: no bound of the search was met. */
  readonly exhaustive: boolean;
  /** The lines that no run reaches, the ends of the processes left out. */
  readonly unreached: readonly string[];
}

export interface CheckOptions {
  /** For the preprocessor, as `FAULTS=1` or the name of a mutant. */
  readonly defines?: readonly string[];
  /** How the search is compiled: worth its time for millions of states only. */
  readonly optimized?: boolean;
}

/** @param model its main file, from this folder */
export async function check(
  model: string,
  { defines = [], optimized = false }: CheckOptions = {},
): Promise<Verdict> {
  const folder = await mkdtemp(join(tmpdir(), 'model-'));
  const options = { cwd: folder, timeout: TIMEOUT };
  try {
    const source = fileURLToPath(new URL(model, import.meta.url));
    await run('spin', ['-a', ...defines.map((name) => `-D${name}`), source], options);
    const flags = [optimized ? '-O2' : '-O0', '-DSAFETY', '-DNOFAIR', '-DCOLLAPSE'];
    await run('cc', [...flags, '-o', 'pan', 'pan.c'], options);
    const { stdout } = await run(join(folder, 'pan'), ['-m1000000', `-w${optimized ? '23' : '18'}`], options);
    return read(stdout);
  } finally {
    await rm(folder, { recursive: true });
  }
}

function read(output: string): Verdict {
  const numberIn = (pattern: RegExp) => Number(pattern.exec(output)?.[1] ?? NaN);
  return {
    errors: numberIn(/errors: (\d+)/),
    violation: /^pan:1: (.*) \(at depth/m.exec(output)?.[1],
    states: numberIn(/^ *(\d+) states, stored/m),
    exhaustive: !/max search depth too small|Search not completed|hash-array/.test(output),
    unreached: [...output.matchAll(/^\t(\S+:\d+), state \d+, "(.*)"$/gm)]
      .filter(([, , statement]) => statement !== '-end-')
      .map(([, line = '', statement = '']) => `${line} ${statement}`),
  };
}
