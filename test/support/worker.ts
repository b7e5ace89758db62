import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { ClusterOptions, RedisOptions } from 'ioredis';
import type { LockModuleOptions } from '../../lib/index.js';
import { guard } from './guard.js';

/** Only ends what hangs, ms: a machine may have any speed. */
const PATIENCE = 60_000;

const PROGRAM = fileURLToPath(new URL('./lock-worker.mjs', import.meta.url));

export interface WorkerOptions {
  /** One server, or the nodes of a quorum. */
  url:
    | string
    | RedisOptions
    | string[]
    | { cluster: { host: string; port: number }[]; options?: ClusterOptions };
  /** Of the worker's LockService, besides the connection. */
  service?: Omit<LockModuleOptions, 'connection' | 'nodes' | 'store'>;
  /** Beside the environment of the test. */
  env?: Record<string, string>;
  /** A module that runs in the worker before anything else. */
  preload?: string;
  /** @default the built package: the URL of another build of it */
  build?: string;
}

/** What a worker says of one hold, in ms on a clock that all processes of a machine share. */
export interface HoldRecord {
  invoked: number;
  granted: number;
  /** Just before the release was sent. */
  released: number;
  fencingToken: number;
  /** Whether the lease had ended before `released`. */
  lost: boolean;
}

/** What a worker says of an attempt that has failed, on the same clock. */
export interface RefusalRecord {
  invoked: number;
  refused: number;
  message: string;
}

type Answer =
  | { ready: true }
  | { id: number; result: unknown }
  | { id: number; error: { name: string; message: string; code?: string; reason?: string } };

interface Call {
  resolve(result: unknown): void;
  reject(error: Error): void;
}

/** Another process that uses the built package, which a test may stop and kill. Its methods are in lock-worker.mjs. */
export class Worker {
  readonly pid: number;
  /** With its exit code; null after a signal. */
  private readonly exited: Promise<number | null>;
  private readonly calls = new Map<number, Call>();
  private count = 0;
  private output = '';

  private constructor(private readonly child: ChildProcess) {
    guard(child);
    this.pid = child.pid ?? 0;
    this.exited = once(child, 'exit').then(([code]) => code as number | null);
    child.on('message', (answer: Answer) => {
      this.settle(answer);
    });
    const log = (chunk: Buffer) => (this.output += chunk.toString());
    child.stdout?.on('data', log);
    child.stderr?.on('data', log);
    child.once('close', () => {
      for (const call of this.calls.values()) call.reject(new Error(`The worker has ended.\n${this.output}`));
    });
  }

  static async start({ url, service = {}, env, preload, build }: WorkerOptions): Promise<Worker> {
    // `advanced` carries Infinity. Jest's own flags are not for the worker.
    const execArgv =
      preload === undefined ? [] : ['--import', `data:text/javascript,${encodeURIComponent(preload)}`];
    const child = fork(PROGRAM, {
      serialization: 'advanced',
      execArgv,
      silent: true,
      env: { ...process.env, ...env },
    });
    const worker = new Worker(child);
    child.send({ url, options: { waitTime: PATIENCE, ...service }, build });
    // Closed, and not just gone: then all of its output has been read.
    await Promise.race([once(child, 'message'), once(child, 'close')]);
    if (worker.ended) throw new Error(`The worker did not start:\n${worker.output}`);
    return worker;
  }

  call<T>(method: string, ...args: unknown[]): Promise<T> {
    const id = this.count++;
    const result = new Promise<T>((resolve, reject) => {
      this.calls.set(id, { resolve, reject });
      this.child.send({ id, method, args }, (error) => {
        if (error !== null) reject(error);
      });
    });
    // A test that kills the worker need not have waited for everything.
    result.catch(() => undefined);
    return result;
  }

  freeze(): void {
    this.child.kill('SIGSTOP');
  }

  thaw(): void {
    this.child.kill('SIGCONT');
  }

  /** As a crash does: nothing is released. */
  async kill(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.exited;
  }

  /** Shuts the service down. Rejects if the process does not exit by itself within ms: something was left open. */
  async stop(exitTime = PATIENCE): Promise<void> {
    if (this.ended) return;
    await this.call('shutDown');
    this.child.disconnect();
    const code = await Promise.race([this.exited, sleep(exitTime, null, { ref: false })]);
    await this.kill();
    if (code === 0) return;
    const end = code === null ? 'did not exit by itself' : `exited with code ${String(code)}`;
    throw new Error(`The worker ${end} after its shutdown.\n${this.output}`);
  }

  private get ended(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null;
  }

  private settle(answer: Answer): void {
    if ('ready' in answer) return;
    const call = this.calls.get(answer.id);
    this.calls.delete(answer.id);
    if ('error' in answer) {
      const { message, ...details } = answer.error;
      call?.reject(Object.assign(new Error(message), details));
    } else {
      call?.resolve(answer.result);
    }
  }
}
