import { execFileSync } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { serverProgram } from '../../support/redis-server.js';
import type { RoundResult } from './round.js';
import { count, type Group, GROUPS, type Strikes, timesOf } from './strikes.js';

/** What a long run must have done at least: strikes of each group, and acquisitions. */
const LEAST_STRIKES = 50;
const LEAST_ACQUISITIONS = 100_000;

/** The figures of a run. */
export class Summary {
  readonly cores = availableParallelism();
  readonly server = versionOf(serverProgram());
  rounds = 0;
  acquisitions = 0;
  ofSeveral = 0;
  handedOver = 0;
  losses = 0;
  deadlocks = 0;
  violations = 0;
  readonly expected = { overlaps: 0, refusedWrites: 0 };
  readonly byTopology: Record<string, { rounds: number; acquisitions: number }> = {};
  readonly byChecker: Record<string, number> = {};
  readonly strikes: Strikes = {};
  readonly failedRounds: number[] = [];
  /** The locks that were broken on purpose. */
  controls: { name: string; caught: Record<string, number> }[] = [];
  /** Where a long run has done too little to say anything. */
  shortfalls: string[] = [];
  minutes = 0;
  readonly #begun = performance.now();

  constructor(readonly seed: number) {}

  add(topology: string, number: number, result: RoundResult): void {
    this.minutes = (performance.now() - this.#begun) / 60_000;
    this.rounds++;
    this.acquisitions += result.acquisitions;
    this.ofSeveral += result.ofSeveral;
    this.handedOver += result.handedOver;
    this.losses += result.losses;
    this.deadlocks += result.deadlocks;
    this.violations += result.violations.length;
    this.expected.overlaps += result.expected.overlaps;
    this.expected.refusedWrites += result.expected.refused;
    const own = (this.byTopology[topology] ??= { rounds: 0, acquisitions: 0 });
    own.rounds++;
    own.acquisitions += result.acquisitions;
    for (const { checker } of result.violations) this.byChecker[checker] = (this.byChecker[checker] ?? 0) + 1;
    for (const [group, fault, times] of rowsOf(result.strikes)) count(this.strikes, group, fault, times);
    if (result.violations.length > 0) this.failedRounds.push(number);
  }

  findShortfalls(): void {
    const few = GROUPS.filter((group) => timesOf(this.strikes, group) < LEAST_STRIKES).map(
      (group) =>
        `${group} struck ${String(timesOf(this.strikes, group))} times instead of ${String(LEAST_STRIKES)}`,
    );
    const acquired = `${String(this.acquisitions)} acquisitions instead of ${String(LEAST_ACQUISITIONS)}`;
    this.shortfalls = this.acquisitions < LEAST_ACQUISITIONS ? [...few, acquired] : few;
  }

  print(): void {
    const { rounds, acquisitions, ofSeveral, handedOver, losses, expected, violations } = this;
    console.log(
      `\n${String(rounds)} rounds, ${String(acquisitions)} acquisitions (${String(handedOver)} by hand-over inside a ` +
        `process, ${String(ofSeveral)} calls for several locks)`,
    );
    for (const group of GROUPS) {
      console.log(`${String(timesOf(this.strikes, group)).padStart(6)}  ${group}`);
      for (const [fault, times] of Object.entries(this.strikes[group] ?? {}).sort())
        console.log(`${String(times).padStart(14)}  ${fault}`);
    }
    console.log(`${String(losses)} leases lost and told so`);
    console.log(`${String(this.deadlocks)} callers told of a deadlock`);
    console.log(
      `${String(expected.overlaps)} overlaps after a loss of data, as expected; the resource refused ${String(expected.refusedWrites)} writes and lost none`,
    );
    console.log(`${String(violations)} violations ${JSON.stringify(this.byChecker)}\n`);
    for (const shortfall of this.shortfalls) console.log(`Too little: ${shortfall}`);
  }
}

/** Each round and each broken lock is a test. */
export function jestReport({ rounds, failedRounds, controls, shortfalls }: Summary) {
  const missed = controls.filter(({ caught }) => Object.keys(caught).length === 0);
  const failed = failedRounds.length + missed.length;
  const messages = [
    ...failedRounds.map((number) => `Round ${String(number)} has violations`),
    ...missed.map(({ name }) => `Nothing caught ${name}`),
    ...shortfalls,
  ];
  return {
    success: messages.length === 0,
    numPassedTests: rounds + controls.length - failed,
    numFailedTests: failed,
    numPendingTests: 0,
    numTodoTests: 0,
    numRuntimeErrorTestSuites: 0,
    testResults: messages.map((message) => ({ name: 'chaos', status: 'failed', message })),
  };
}

/** Every fault with its group, in the order of the groups. */
export const rowsOf = (strikes: Strikes): [Group, string, number][] =>
  GROUPS.flatMap((group) =>
    Object.entries(strikes[group] ?? {}).map(([fault, times]): [Group, string, number] => [
      group,
      fault,
      times,
    ]),
  );

/** Such as `Redis 7.0.15`. */
function versionOf(program: string | undefined): string | undefined {
  if (program === undefined) return undefined;
  const [, name, version] =
    /^(\S+) server v=(\S+)/.exec(execFileSync(program, ['--version']).toString()) ?? [];
  return `${name ?? ''} ${version ?? ''}`;
}
