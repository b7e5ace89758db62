import { execFileSync } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { serverProgram } from '../support/redis-server.js';
import type { RoundResult } from './round.js';

/** The figures of a run. */
export class Summary {
  readonly cores = availableParallelism();
  readonly server = versionOf(serverProgram());
  rounds = 0;
  acquisitions = 0;
  handedOver = 0;
  losses = 0;
  violations = 0;
  readonly expected = { overlaps: 0, refusedWrites: 0 };
  readonly byTopology: Record<string, { rounds: number; acquisitions: number }> = {};
  readonly byChecker: Record<string, number> = {};
  readonly strikes: Record<string, number> = {};
  readonly failedRounds: number[] = [];
  /** The locks that were broken on purpose. */
  controls: { name: string; caught: Record<string, number> }[] = [];
  minutes = 0;
  readonly #begun = performance.now();

  constructor(readonly seed: number) {}

  add(topology: string, number: number, result: RoundResult): void {
    this.minutes = (performance.now() - this.#begun) / 60_000;
    this.rounds++;
    this.acquisitions += result.acquisitions;
    this.handedOver += result.handedOver;
    this.losses += result.losses;
    this.violations += result.violations.length;
    this.expected.overlaps += result.expected.overlaps;
    this.expected.refusedWrites += result.expected.refused;
    const own = (this.byTopology[topology] ??= { rounds: 0, acquisitions: 0 });
    own.rounds++;
    own.acquisitions += result.acquisitions;
    for (const { checker } of result.violations) this.byChecker[checker] = (this.byChecker[checker] ?? 0) + 1;
    for (const [fault, count] of Object.entries(result.strikes))
      this.strikes[fault] = (this.strikes[fault] ?? 0) + count;
    if (result.violations.length > 0) this.failedRounds.push(number);
  }

  print(): void {
    const { rounds, acquisitions, handedOver, losses, expected, violations } = this;
    console.log(
      `\n${String(rounds)} rounds, ${String(acquisitions)} acquisitions (${String(handedOver)} by hand-over inside a process)`,
    );
    for (const [fault, count] of Object.entries(this.strikes).sort())
      console.log(`${String(count).padStart(6)}  ${fault}`);
    console.log(`${String(losses)} leases lost and told so`);
    console.log(
      `${String(expected.overlaps)} overlaps after a loss of data, as expected; the resource refused ${String(expected.refusedWrites)} writes and lost none`,
    );
    console.log(`${String(violations)} violations ${JSON.stringify(this.byChecker)}\n`);
  }
}

/** Each round and each broken lock is a test. */
export function jestReport({ rounds, failedRounds, controls }: Summary) {
  const failed =
    failedRounds.length + controls.filter(({ caught }) => Object.keys(caught).length === 0).length;
  return {
    success: failed === 0,
    numPassedTests: rounds + controls.length - failed,
    numFailedTests: failed,
    numPendingTests: 0,
    numTodoTests: 0,
    numRuntimeErrorTestSuites: 0,
  };
}

/** Such as `Redis 7.0.15`. */
function versionOf(program: string | undefined): string | undefined {
  if (program === undefined) return undefined;
  const [, name, version] =
    /^(\S+) server v=(\S+)/.exec(execFileSync(program, ['--version']).toString()) ?? [];
  return `${name ?? ''} ${version ?? ''}`;
}
