import { Random } from '../../chaos/random.js';
import type { Topology } from '../cast.js';
import { faultsOf, type Plan } from '../plan.js';
import { planOf } from '../plans.js';
import { run, type RunResult } from '../run.js';
import { Program } from '../world/program.js';
import type { Mutant } from './mutants.js';

export interface Caught {
  readonly name: string;
  readonly topology: string;
  /** Undefined where no seed has caught it. */
  readonly seed: number | undefined;
  readonly checkers: readonly string[];
  readonly events: number;
  /** s of one core. */
  readonly seconds: number;
  readonly plan?: Plan;
  readonly result?: RunResult;
}

/** The plan of a mutant for one of its seeds. */
export function planFor(mutant: Mutant, topology: Topology, seed: number): Plan {
  const { faults, habits, loops, leaseTime, leaseTimes, longestCall, longCallsFrom } = mutant;
  const { locks, lasting, duration = 3_000, strikes = 6 } = mutant;
  const random = new Random(seed);
  const base = planOf(topology, seed);
  return {
    ...base,
    workers: 4,
    loops,
    duration,
    leaseTime,
    leaseTimes,
    longestCall,
    longCallsFrom,
    sets: undefined,
    habits,
    locks: locks ?? base.locks,
    faults: [
      ...(lasting === undefined ? [] : faultsOf([lasting], random, 400, 1)),
      ...faults.flatMap((kind) => faultsOf([kind], random, duration, strikes)),
    ],
  };
}

/** Tries the seeds in turn, until one catches the mutant or the time is over. */
export async function catchMutant(
  mutant: Mutant,
  topology: Topology,
  dist: string,
  limit: number,
): Promise<Caught> {
  const { name } = mutant;
  const load = (patches: Mutant['patches']) => Program.load(dist, topology.hasClients, patches);
  const [program, whole] = await Promise.all([load(mutant.patches), load([])]);
  const begun = process.cpuUsage();
  const seconds = () => {
    const { user, system } = process.cpuUsage(begun);
    return (user + system) / 1e6;
  };
  let events = 0;
  for (let seed = 1; seconds() < limit; seed++) {
    const plan = planFor(mutant, topology, seed);
    const result = await run(plan, topology, program);
    events += result.events;
    if (result.violations.length === 0) continue;
    // What is found in the whole lock, too, catches nothing.
    const blind = new Set((await run(plan, topology, whole)).violations.map(({ checker }) => checker));
    const checkers = [...new Set(result.violations.map(({ checker }) => checker))].filter(
      (one) => !blind.has(one),
    );
    if (checkers.length > 0)
      return { name, topology: topology.name, seed, checkers, events, seconds: seconds(), plan, result };
  }
  return { name, topology: topology.name, seed: undefined, checkers: [], events, seconds: seconds() };
}
