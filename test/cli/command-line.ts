import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Writable } from 'node:stream';
import { cli } from '../../lib/cli/cli.js';
import { Screen } from '../../lib/cli/output/screen.js';
import { guard } from '../support/guard.js';

/** What `bin` of package.json names. */
export const PROGRAM = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

export interface Outcome {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

export interface Running {
  readonly child: ChildProcess;
  readonly stdout: () => string;
  readonly ended: Promise<Outcome>;
}

type Environment = Record<string, string | undefined>;

/** The built program as a process of its own, without the settings of this one. */
export function start(args: readonly string[], env: Environment = {}): Running {
  const inherited = { ...process.env, REDIS_URL: undefined, NODE_OPTIONS: undefined, NO_COLOR: undefined };
  const child = spawn(process.execPath, [PROGRAM, ...args], {
    env: { ...inherited, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  guard(child);
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const ended = once(child, 'close').then((end) => {
    const [code, signal] = end as [number | null, NodeJS.Signals | null];
    return { code, signal, stdout, stderr };
  });
  return { child, stdout: () => stdout, ended };
}

export const run = (args: readonly string[], env?: Environment): Promise<Outcome> => start(args, env).ended;

/** The same in this process. `columns`: of a terminal. */
export async function call(
  args: readonly string[],
  env: Environment = {},
  columns?: number,
): Promise<Omit<Outcome, 'signal'>> {
  let [stdout, stderr] = ['', ''];
  const out = Object.assign(
    into((text) => (stdout += text)),
    { isTTY: columns !== undefined, columns },
  );
  const screen = new Screen(
    env,
    out as never,
    into((text) => (stderr += text)),
  );
  const code = await cli(args, screen);
  return { code, stdout, stderr };
}

const into = (add: (text: string) => void) =>
  new Writable({
    write: (chunk: Buffer, _, done) => {
      add(chunk.toString());
      done();
    },
  });
