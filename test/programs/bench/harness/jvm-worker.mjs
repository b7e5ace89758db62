import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Calls } from './calls.mjs';
import { now } from './clock.mjs';

const CLASSES = ['classes', 'dependency/*'].map((path) =>
  fileURLToPath(new URL(`../../../jvm/target/${path}`, import.meta.url)),
);
/**
 * A collector that leaves the cores to the neighbours, and the compiler that is done within a second: the other one would be
 * at work until the end of what is measured, on the same cores.
 */
const FLAGS = ['-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-Xmx256m'];
const KINDS = ['plain', 'fair', 'spin'];
/** ms for which each kind of lock is used before it is measured: the JVM compiles what is used often. */
const WARM_UP = 1_000;

/** A JVM that starts takes a core, so that no more of them start at a time. */
const starts = Array.from({ length: availableParallelism() }, () => Promise.resolve());
let started = 0;

const running = new Set();
process.once('exit', () => {
  // A process that is stopped hears no other signal.
  for (const child of running) child.kill('SIGKILL');
});

/**
 * A JVM with Redisson's client, in the place of a process of the fleet. It takes seconds to start and to compile, so it
 * stays for the whole run, and is stopped where it is while others perform: else its pings would count as theirs.
 */
export class JvmWorker {
  calls = new Calls();
  ended = false;

  async call(call, ...args) {
    return await this[call](...args);
  }

  async open({ options: { urls, ttl, kind } }) {
    this.kind = kind;
    if (this.child === undefined) await this.inTurn(() => this.start(urls[0], ttl));
    else this.child.kill('SIGCONT');
  }

  async play(work, { name, waiters, hold = 0, time }, at) {
    if (work !== 'loop') throw new Error(`A JVM has no ${work}`);
    await sleep(at - now());
    const began = now();
    // A name of its own: the release of another contender has nothing to tell a process that is stopped.
    const turns = await this.ask('loop', this.kind, `redisson:${name}`, waiters, hold, time);
    const [from, until] = [began + time / 4, began + time];
    return {
      began,
      ended: Math.max(...turns.flat().map(([, , released]) => released)),
      waits: turns.flat().map(([asked, granted]) => granted - asked),
      served: turns.map((own) => own.filter(([, granted]) => granted >= from && granted < until).length),
      cpu: NaN,
      counted: false,
    };
  }

  close() {
    this.child.kill('SIGSTOP');
  }

  async stop() {
    const { child, ended } = this;
    // One that has not begun to start yet does not.
    this.ended = true;
    if (ended || child === undefined) return;
    const exit = once(child, 'exit');
    child.kill('SIGKILL');
    await exit;
  }

  async inTurn(start) {
    const core = started++ % starts.length;
    const turn = starts[core].then(start);
    starts[core] = turn.catch(() => undefined);
    await turn;
  }

  async start(url, watchdog) {
    if (this.ended) throw new Error('The JVM is not wanted any more');
    const child = spawn('java', [...FLAGS, '-cp', CLASSES.join(':'), 'locks.Worker', url, String(watchdog)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.child = child;
    running.add(child);
    child.once('exit', () => {
      running.delete(child);
      this.ended = true;
      this.calls.end('The JVM has ended');
    });
    // Its exit says that it has ended.
    child.stdin.on('error', () => undefined);
    const lines = createInterface({ input: child.stdout });
    await Promise.race([once(lines, 'line'), once(child, 'exit')]);
    if (this.ended) throw new Error(`The JVM did not start: exit code ${child.exitCode}`);
    lines.on('line', (line) => this.settle(line));
    for (const kind of KINDS) await this.ask('loop', kind, `warm-up:${child.pid}`, 2, 0, WARM_UP);
  }

  ask(verb, ...args) {
    return this.calls.ask(verb, (id) => {
      // The word after the id names a thread of the worker, which does one thing after another.
      this.child.stdin.write(`${[id, 'caller', verb, ...args].map(encodeURIComponent).join(' ')}\n`);
    });
  }

  settle(line) {
    const [id, mark, ...rest] = line.split(' ');
    if (mark === '=') this.calls.resolve(id, JSON.parse(rest.join(' ')));
    else this.calls.reject(id, decodeURIComponent(rest.join(' ').replaceAll('+', ' ')));
  }
}
