import type { Topology } from './cast.js';
import { type FaultKind, faultsOf, HABITS, type LockSpec, type Plan } from './plan.js';
import { Random } from '../chaos/random.js';

/** Faults that can strike anywhere. */
const EVERYWHERE: readonly FaultKind[] = [
  'process killed',
  'process paused',
  'process stalls in a turn',
  'process clock stepped',
  'server paused',
  'connections cut',
  'out of reach',
  'slow',
  'requests lost',
  'replies lost',
  'messages dropped',
];

export const PLAIN: readonly LockSpec[] = [
  { name: 'plain', kind: 'lock' },
  { name: 'busy', kind: 'lock' },
];

const ALL: readonly LockSpec[] = [
  ...PLAIN,
  { name: 'fair', kind: 'fair' },
  { name: 'read-write', kind: 'read-write' },
  { name: 'permits', kind: 'semaphore', permits: 3 },
];

/** What services on one quorum may have for their lease time; the last one is that of the command line. */
const LEASES = [400, 1_500, 3_000, 6_000, 30_000];

/** What services take for the nodes of the quorum. */
const SETS = [
  [0, 1, 2, 3, 4],
  [0, 1, 2],
  [0, 1, 3],
  [2, 3, 4],
];

/**
 * Services with different nodes are told apart by a node that they share. A node that has forgotten its charter, or that a
 * service cannot reach at its start, does not tell.
 */
const HIDING: readonly FaultKind[] = [
  'server killed, restarted empty',
  'majority of a hold killed, restarted empty',
  'server paused',
  'out of reach',
  'slow',
  'requests lost',
  'replies lost',
];

/** One of the schedules of a topology. Some are calm, some have one kind of fault, most have several. */
export function planOf(topology: Topology, seed: number): Plan {
  const random = new Random(seed);
  const duration = 3_000;
  const leaseTime = random.pick([1_500, 1_500, 3_000]);
  const kinds = [...EVERYWHERE, ...topology.faults];
  const way = random.next();
  const some = way < 0.1 ? [] : way < 0.4 ? [random.pick(kinds)] : random.some(kinds);
  const [alone, ...others] = topology.apart ?? [];
  const mixed = topology.forgives && random.next() < 0.6;
  const isDivided = mixed && random.next() < 0.15;
  const chosen = some.filter((kind) => !(others.includes(kind) && some.some((one) => one === alone)));
  return {
    seed,
    workers: random.between(2, 4),
    loops: random.between(1, 6),
    duration,
    leaseTime,
    leaseTimes: mixed ? [leaseTime, ...Array.from({ length: 3 }, () => random.pick(LEASES))] : undefined,
    longestCall: mixed ? random.pick([2_000, 5_000]) : undefined,
    sets: isDivided ? Array.from({ length: 4 }, () => random.pick(SETS)) : undefined,
    habits: {
      ...HABITS,
      several: random.pick([0, 0, 0.05, 0.2]),
      nests: random.pick([0, 0.01, 0.1]),
      fixedShare: random.pick([0, 0.15]),
      long: random.pick([0.012, 0.1]),
      patient: random.pick([0.5, 1]),
    },
    locks: topology.queues ? ALL : PLAIN,
    faults: faultsOf(
      isDivided ? chosen.filter((kind) => !HIDING.includes(kind)) : chosen,
      random,
      duration,
      random.between(2, 14),
    ),
  };
}
