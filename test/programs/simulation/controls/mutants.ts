import { broken as chaosControls, type Control } from '../../chaos/variants/broken.js';
import type { Patch } from '../../chaos/variants/variant.js';
import { redisMutants } from './redis.js';
import { type FaultKind, HABITS, type Habits, type LockSpec } from '../plan.js';

/** A lock that is broken on purpose, and the plans that bring it to light. */
export interface Mutant {
  readonly name: string;
  readonly topology: string;
  readonly patches: readonly Patch[];
  readonly faults: readonly FaultKind[];
  readonly habits: Habits;
  readonly loops: number;
  readonly leaseTime: number;
  readonly locks: readonly LockSpec[] | undefined;
  /** As in a plan. */
  readonly leaseTimes?: readonly number[] | undefined;
  readonly longestCall?: number;
  readonly longCallsFrom?: number;
  /** A fault that strikes soon after the start, before the others. */
  readonly lasting?: FaultKind;
  /** ms @default 3000 */
  readonly duration?: number;
  readonly strikes?: number;
}

/** What the faults of chaos runs are called here. */
const KINDS: Readonly<Record<string, FaultKind>> = {
  'worker stopped': 'process paused',
  'event loop blocked': 'process stalls in a turn',
  'replies lost after the command was carried out': 'replies lost',
  'replies delayed': 'slow',
  'client clock stepped': 'process clock stepped',
  'server stopped': 'server paused',
  'network slow': 'slow',
  FLUSHALL: 'data lost',
  'DEL of a lock': 'lock lost',
  'the majority of a fresh hold killed, restarted empty': 'majority of a hold killed, restarted empty',
  'requests lost': 'requests lost',
  'messages dropped': 'messages dropped',
  'notes of waits stay': 'notes of waits stay',
};

const calm: Habits = { ...HABITS, fixedShare: 0, tries: 0, patient: 1, several: 0, nests: 0, extensions: 0 };

/** What is different here. Time costs nothing, so that a holder need not hold for long to be there when others are back. */
const ADJUSTED: Readonly<Record<string, Partial<Mutant>>> = {
  // Where nothing strikes, a wait of 300 ms for a free lock is seen, so that the next caller comes too late to hide it.
  'no second try after the subscription': {
    faults: [],
    locks: Array.from({ length: 60 }, (_, index) => ({ name: `quiet ${String(index)}`, kind: 'lock' })),
  },
  // Every tenure that there has been is renewed: the fewer, the sooner it is over.
  'watchdog outlives the release': { duration: 500, loops: 1 },
  'restarted nodes vote at once': {
    leaseTime: 3_000,
    loops: 3,
    habits: { ...calm, long: 0.5, shortest: 300, longest: 600 },
  },
};

const isOfRedis = ({ patches }: Control) => patches.some(({ file }) => file.startsWith('stores/redis/'));

/** The controls of the chaos runs that concern what a topology is made of. */
const known: readonly Mutant[] = chaosControls
  .filter(({ promises, faults }) => promises !== true && faults.every((name) => name in KINDS))
  .map((control) => {
    const { name, patches, faults, habits = {}, loops = 6, leaseTime = 1_500, locks, topology } = control;
    return {
      name,
      topology: topology ?? (isOfRedis(control) ? 'redis' : 'memory'),
      patches,
      faults: faults.flatMap((fault) => KINDS[fault] ?? []),
      habits: { ...HABITS, several: 0, ...habits },
      loops,
      leaseTime,
      locks,
      ...ADJUSTED[name],
    };
  });

const turnless: Mutant = {
  name: 'multi-lock that never gets its turn beside steady queues',
  topology: 'memory',
  patches: [
    {
      file: 'locks/multi/rounds.js',
      find: 'const MOST_REFUSALS = 4;',
      replace: 'const MOST_REFUSALS = Infinity;',
    },
  ],
  faults: [],
  habits: { ...calm, several: 0.02, long: 1, shortest: 2, longest: 6, pause: 0, served: 0 },
  loops: 8,
  leaseTime: 3_000,
  locks: ['a', 'b', 'c', 'd'].map((name) => ({ name, kind: 'lock' })),
  duration: 12_000,
};

/** Two processes with short leases, and two with long ones that they hold for long. */
const mixed = {
  topology: 'quorum',
  faults: ['majority of a hold killed, restarted empty', 'server killed, restarted empty', 'out of reach'],
  habits: { ...calm, fixedShare: 0.5, long: 0.5, shortest: 1_000, longest: 3_000, tries: 0.3 },
  loops: 3,
  leaseTime: 400,
  leaseTimes: [400, 6_000],
  longestCall: 6_000,
  locks: undefined,
  duration: 8_000,
  strikes: 8,
} as const satisfies Omit<Mutant, 'name' | 'patches'>;

const further: readonly Mutant[] = [
  turnless,
  {
    ...turnless,
    name: 'multi-lock on Redis that never gets its turn beside steady queues',
    topology: 'redis',
  },
  {
    name: 'no quarantine of restarted nodes',
    topology: 'quorum',
    patches: [
      {
        file: 'stores/quorum/charters.js',
        find: 'const left = isNew ? 0 : quarantineFor(longest) - age;',
        replace: 'const left = 0;',
      },
    ],
    faults: ['majority of a hold killed, restarted empty'],
    habits: { ...calm, long: 0.5, shortest: 300, longest: 600 },
    loops: 3,
    leaseTime: 3_000,
    locks: undefined,
  },
  {
    ...mixed,
    name: 'quorum founded beside a living one',
    patches: [
      {
        file: 'stores/quorum/charters.js',
        find: 'const service = numbersOf(this.numbers === undefined ? present : [...present, this.numbers]);',
        replace: 'const service = undefined;',
      },
      {
        file: 'stores/quorum/charters.js',
        find: '(service === undefined && this.present(index) !== undefined)',
        replace: 'false',
      },
    ],
  },
  {
    ...mixed,
    name: 'numbers of a restarted node itself',
    patches: [
      {
        file: 'stores/quorum/charters.js',
        find: 'quarantineFor(longest) - age',
        replace: 'quarantineFor(this.quorum.leaseTime) - age',
      },
    ],
  },
  {
    ...mixed,
    name: "raises with a majority's acknowledgement",
    patches: [
      {
        file: 'stores/quorum/lease-limit.js',
        find: 'if (this.missing.length === 0)',
        replace: 'if (this.missing.length * 2 < members.length)',
      },
    ],
    // The first process loses two nodes, takes long leases from the others, and these restart.
    faults: ['bare majority of a hold killed, its holder out of reach'],
    lasting: 'minority out of reach of the first process',
    leaseTime: 1_000,
    leaseTimes: undefined,
    longCallsFrom: 500,
    habits: { ...mixed.habits, fixedShare: 1, long: 1, shortest: 2_500, longest: 4_000 },
    loops: 6,
    strikes: 1,
    duration: 4_000,
    locks: ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => ({ name, kind: 'lock' })),
  },
  {
    name: 'multi-lock on a quorum waits for the wrong name',
    topology: 'quorum',
    patches: [
      {
        file: 'stores/quorum/majority-acquisition.js',
        find: 'return { granted: false, name, holder',
        replace:
          "return { granted: false, name: this.request.names.find((other) => other !== name) ?? '', holder",
      },
    ],
    faults: [],
    habits: { ...calm, several: 0.5, long: 0.4, shortest: 200, longest: 500, pause: 400 },
    loops: 2,
    leaseTime: 6_000,
    locks: ['a', 'b', 'c'].map((name) => ({ name, kind: 'lock' })),
    duration: 6_000,
  },
];

export const mutants: readonly Mutant[] = [...known, ...further, ...redisMutants];
