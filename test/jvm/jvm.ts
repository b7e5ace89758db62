import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { guard } from '../support/guard.js';
import { JvmThread } from './jvm-thread.js';

const CLASSES = ['classes', 'dependency/*'].map((path) =>
  fileURLToPath(new URL(`target/${path}`, import.meta.url)),
);
// These start a small program soonest, and leave the cores to the others.
const FLAGS = ['-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-Xmx256m'];

export interface JvmOptions {
  url: string;
  /** Redisson's `lockWatchdogTimeout`, ms. @default Redisson's own */
  watchdog?: number;
}

interface Call {
  resolve(result: unknown): void;
  reject(error: Error): void;
}

/** Another process, with Redisson on a JVM, which a test may kill. Its protocol is in Command.java and Locks.java. */
export class Jvm {
  readonly pid: number;
  private readonly exited: Promise<unknown>;
  private readonly calls = new Map<string, Call>();
  private count = 0;
  private errors = '';

  private constructor(private readonly child: ChildProcess) {
    guard(child);
    this.pid = child.pid ?? 0;
    this.exited = once(child, 'exit');
    child.stderr?.on('data', (chunk: Buffer) => (this.errors += chunk.toString()));
    child.once('close', () => {
      for (const { reject } of this.calls.values()) reject(new Error(`The JVM has ended.\n${this.errors}`));
    });
  }

  static async start({ url, watchdog = 30_000 }: JvmOptions): Promise<Jvm> {
    const child = spawn('java', [...FLAGS, '-cp', CLASSES.join(':'), 'locks.Worker', url, String(watchdog)], {
      stdio: 'pipe',
    });
    const jvm = new Jvm(child);
    const lines = createInterface({ input: child.stdout });
    await Promise.race([once(lines, 'line'), once(child, 'close')]);
    if (child.exitCode !== null) throw new Error(`The JVM did not start:\n${jvm.errors}`);
    lines.on('line', (line) => {
      jvm.settle(line);
    });
    return jvm;
  }

  /** A thread of the JVM, which is an owner to Redisson. What it is told it does one after another. */
  thread(name: string): JvmThread {
    return new JvmThread((verb, ...args) => this.call(name, verb, args));
  }

  /** As a crash does: nothing is released. */
  async kill(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.exited;
  }

  private call(thread: string, verb: string, args: readonly (string | number)[]): Promise<unknown> {
    const id = String(this.count++);
    const result = new Promise((resolve, reject) => this.calls.set(id, { resolve, reject }));
    // A test that kills the JVM need not have waited for everything.
    result.catch(() => undefined);
    const words = [id, thread, verb, ...args].map((word) => encodeURIComponent(word));
    this.child.stdin?.write(`${words.join(' ')}\n`);
    return result;
  }

  private settle(line: string): void {
    const [id = '', mark, ...rest] = line.split(' ');
    const call = this.calls.get(id);
    this.calls.delete(id);
    if (mark === '=') call?.resolve(JSON.parse(rest.join(' ')));
    else call?.reject(new Error(decodeURIComponent(rest.join(' ').replaceAll('+', ' '))));
  }
}
