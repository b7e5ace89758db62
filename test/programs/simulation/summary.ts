import { availableParallelism } from 'node:os';
import type { Caught } from './controls/catch.js';
import type { RunResult } from './run.js';

/** The figures of one topology. */
export class Figures {
  runs = 0;
  events = 0;
  acquisitions = 0;
  /** s of virtual time. */
  virtualSeconds = 0;
  /** s of one core. */
  seconds = 0;
  violations = 0;
  faults = 0;
  readonly failedSeeds: number[] = [];
  readonly #begun = process.cpuUsage();

  constructor(readonly topology: string) {}

  add(seed: number, { events, acquisitions, time, violations, history }: RunResult): void {
    this.runs++;
    this.events += events;
    this.acquisitions += acquisitions;
    this.virtualSeconds += time / 1_000;
    this.violations += violations.length;
    this.faults += history.faults.length;
    if (violations.length > 0) this.failedSeeds.push(seed);
  }

  end(): void {
    const { user, system } = process.cpuUsage(this.#begun);
    this.seconds = (user + system) / 1e6;
  }

  get line(): string {
    const pace = ((this.events / this.seconds) * 60) / 1e6;
    return (
      `${this.topology}: ${String(this.runs)} runs, ${String(this.events)} events, ${String(this.faults)} faults, ` +
      `${String(this.acquisitions)} acquisitions, ${String(this.violations)} violations in ${this.seconds.toFixed(1)} s ` +
      `of one core: ${pace.toFixed(2)} million events a minute`
    );
  }
}

/** The figures of a simulation. */
export class Summary {
  readonly cores = availableParallelism();
  readonly topologies: Figures[] = [];
  readonly controls: Omit<Caught, 'plan' | 'result'>[] = [];

  begin(topology: string): Figures {
    const figures = new Figures(topology);
    this.topologies.push(figures);
    return figures;
  }

  caught({ name, topology, seed, checkers, events, seconds }: Caught): void {
    this.controls.push({ name, topology, seed, checkers, events, seconds });
  }

  get isGood(): boolean {
    return (
      this.topologies.every(({ violations }) => violations === 0) &&
      this.controls.every(({ seed }) => seed !== undefined)
    );
  }
}
