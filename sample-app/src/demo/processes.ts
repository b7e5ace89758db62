import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';

/** How long a process may take to end by itself, in ms. */
const GRACE = 3_000;

/** The processes that we started, each ended by its own id. */
export class Processes {
  private readonly started: ChildProcess[] = [];

  constructor(private readonly signal: AbortSignal) {}

  /**
   * Starts a process and waits until it prints what matches `ready`, which is returned. Rejects with the system's
   * error (`ENOENT`: no such program), or with what the process printed before it ended.
   */
  async start(
    command: string,
    args: readonly string[],
    { ready, env }: { ready: RegExp; env?: NodeJS.ProcessEnv },
  ): Promise<string> {
    this.signal.throwIfAborted();
    const child = spawn(command, args, {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.started.push(child);
    return await new Promise((resolve, reject) => {
      let output = '';
      const read = (chunk: Buffer) => {
        output += chunk.toString();
        const match = ready.exec(output);
        if (match) resolve(match[0]);
      };
      child.stdout.on('data', read);
      child.stderr.on('data', read);
      child.once('error', reject);
      child.once('close', () => {
        reject(new Error(`${command} ended before it was ready:\n${output}`));
      });
      this.signal.addEventListener('abort', () => {
        reject(this.signal.reason as Error);
      });
    });
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
