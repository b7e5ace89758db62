import type { RoundResult } from './round.js';

/** The figures of a run. */
export class Summary {
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

  constructor(readonly seed: number) {}

  add(topology: string, number: number, result: RoundResult): void {
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
