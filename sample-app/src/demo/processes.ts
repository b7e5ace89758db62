import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';

/** How long a process may take to end by itself, in ms. */
const GRACE = 3_000;

/** One of the {@link Processes}. */
export interface Started {
  /**
   * Waits until it has printed what matches, which is returned. Rejects with the system's error (`ENOENT`: no such program),
   * or with what the process printed before it ended.
   */
  prints(text: RegExp): Promise<string>;
  kill(signal: NodeJS.Signals): void;
}

/** The processes that we started, each ended by its own id. */
export class Processes {
  private readonly started: ChildProcess[] = [];

  constructor(private readonly signal: AbortSignal) {}

  /** Starts a process and waits until it prints what matches `ready`, which is returned. Rejects as {@link Started.prints}. */
  async start(
    command: string,
    args: readonly string[],
    { ready, env }: { ready: RegExp; env?: NodeJS.ProcessEnv },
  ): Promise<string> {
    return await this.open(command, args, env).prints(ready);
  }

  open(command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Started {
    this.signal.throwIfAborted();
    const child = spawn(command, args, {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.started.push(child);
    let output = '';
    let look: () => void = () => undefined;
    let fail: (error: unknown) => void = () => undefined;
    const failed = new Promise<never>((_, reject) => (fail = reject));
    failed.catch(() => undefined);
    const read = (chunk: Buffer) => {
      output += chunk.toString();
      look();
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    child.once('error', fail);
    child.once('close', () => {
      fail(new Error(`${command} ended before it was ready:\n${output}`));
    });
    this.signal.addEventListener('abort', () => {
      fail(this.signal.reason);
    });
    const printed = (text: RegExp) =>
      new Promise<string>((resolve) => {
        look = () => {
          const match = text.exec(output);
          if (match) resolve(match[0]);
        };
        look();
      });
    return {
      prints: (text) => Promise.race([printed(text), failed]),
      kill: (signal) => child.kill(signal),
    };
  }

  /** The last one first, so that none misses what was started before it. */
  async stop(): Promise<void> {
    for (const child of this.started.reverse()) await end(child);
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  child.kill('SIGTERM');
  const force = setTimeout(() => child.kill('SIGKILL'), GRACE);
  await exit;
  clearTimeout(force);
}
