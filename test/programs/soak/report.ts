import type { Evening } from './evening.js';
import { judge, type Sample, type Verdict } from './judge.js';
import type { ServerFigures, ShopFigures } from './measures.js';
import type { Restart } from './restarts.js';
import type { ShopLook } from './shop.js';
import type { SoakOptions } from './soak.js';

/** What a run was made with. */
export interface Machine {
  readonly node: string;
  readonly server: string;
  readonly cores: number;
}

/** Below this part of the rate that was asked for, the run was none. */
const LEAST_RATE = 0.5;

/** The figures of a run, and what is wrong with them. */
export class Report {
  evenings = 0;
  locks = 0;
  bought = 0;
  seconds = 0;
  /** Seats with two buyers. */
  soldTwice = 0;
  readonly answers: Record<string, number> = {};
  readonly looks: Sample[] = [];
  restarts: readonly Restart[] = [];
  verdicts: Verdict[] = [];
  readonly failures: string[] = [];

  constructor(
    readonly options: SoakOptions,
    readonly machine: Machine,
  ) {}

  get rate(): number {
    return this.locks / this.seconds;
  }

  get line(): string {
    const { at, locks, shops, server } = this.looks.at(-1)!;
    const list = (figureOf: (shop: ShopFigures) => number) =>
      shops.map((shop) => figureOf(shop).toFixed(0)).join('/');
    return (
      `${at.toFixed(0).padStart(5)} s  ${String(locks)} locks, heap ${list(({ heap }) => heap)} MB, ` +
      `rss ${list(({ rss }) => rss)} MB, sockets ${list(({ sockets }) => sockets)}, timers ${list(({ timers }) => timers)}, ` +
      `listeners ${list(({ listeners }) => listeners)}, keys ${String(server.keys)}`
    );
  }

  add({ locks, bought, answers, soldTwice, odd }: Evening): void {
    this.evenings++;
    this.locks += locks;
    this.bought += bought;
    this.soldTwice += soldTwice.length;
    for (const [status, times] of Object.entries(answers))
      this.answers[status] = (this.answers[status] ?? 0) + times;
    if (soldTwice.length > 0)
      this.fail(`Evening ${String(this.evenings)}: two buyers of seat ${soldTwice.join(', ')}`);
    for (const answer of odd) this.fail(`Evening ${String(this.evenings)}: a shop answered ${answer}`);
  }

  look(at: number, looks: readonly ShopLook[], server: ServerFigures): void {
    for (const { unexpected } of looks) for (const text of unexpected) this.fail(text);
    this.looks.push({ at, locks: this.locks, shops: looks.map(({ figures }) => figures), server });
  }

  fail(text: string): void {
    this.failures.push(text);
  }

  end(seconds: number, restarts: readonly Restart[]): void {
    this.seconds = seconds;
    this.restarts = restarts;
    try {
      this.verdicts = judge(this.looks);
    } catch (error) {
      this.fail((error as Error).message);
    }
    for (const { title, of, early, late, unit, flat } of this.verdicts) {
      const figure = (value: number) => `${value.toFixed(1)} ${unit}`.trimEnd();
      if (!flat) this.fail(`${title} of ${of} grew from ${figure(early)} to ${figure(late)}`);
    }
    if (this.rate < this.options.rate * LEAST_RATE)
      this.fail(`${this.rate.toFixed(0)} locks/s instead of ${String(this.options.rate)}`);
    for (const { at, firstLock } of restarts)
      if (firstLock === undefined) this.fail(`No buyer had the lock after the restart at ${at.toFixed(0)} s`);
  }
}

/** Each measure of each process is a test, and so is each thing else that went wrong. */
export function jestReport({ verdicts, failures }: Report) {
  const failed = failures.length;
  return {
    success: failed === 0,
    numPassedTests: verdicts.filter(({ flat }) => flat).length,
    numFailedTests: failed,
    numPendingTests: 0,
    numTodoTests: 0,
    numRuntimeErrorTestSuites: 0,
    testResults: failures.map((message) => ({ name: 'soak', status: 'failed', message })),
  };
}
