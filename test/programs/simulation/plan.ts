import { Random } from '../chaos/random.js';
import type { Kind } from '../chaos/history.js';

export interface LockSpec {
  readonly name: string;
  readonly kind: Kind;
  readonly permits?: number;
}

/** How the callers behave; shares are of 1, times are ms. */
export interface Habits {
  /** Of leases with a fixed time. */
  readonly fixedShare: number;
  /** Of callers that wait for ever. */
  readonly patient: number;
  readonly longestWait: number;
  /** Of callers that only try. */
  readonly tries: number;
  /** Of holds that last long. */
  readonly long: number;
  readonly shortest: number;
  readonly longest: number;
  readonly extensions: number;
  /** The longest time between two calls of a loop. */
  readonly pause: number;
  /** Of calls that come as a request to a server that a lock holder has started. */
  readonly served: number;
  /** Of calls for one lock under another one. */
  readonly nests: number;
  /** Of calls for several locks at once. */
  readonly several: number;
  readonly leastPatience: number;
  readonly lingers: number;
}

export const HABITS: Habits = {
  fixedShare: 0.15,
  patient: 0.5,
  longestWait: 3_000,
  tries: 0.15,
  long: 0.012,
  shortest: 300,
  longest: 1_000,
  extensions: 0.05,
  pause: 15,
  served: 0.3,
  nests: 0.01,
  several: 0.05,
  leastPatience: 600,
  lingers: 10,
};

export type FaultKind =
  | 'process killed'
  | 'process paused'
  | 'process stalls in a turn'
  | 'process clock stepped'
  | 'server paused'
  | 'server killed, restarted empty'
  | 'server killed, restarted with its data'
  | 'scripts forgotten'
  | 'memory full'
  | 'server clock stepped and returned'
  | 'majority of a hold killed, restarted empty'
  | 'minority out of reach of the first process'
  | 'bare majority of a hold killed, its holder out of reach'
  | 'data lost'
  | 'lock lost'
  | 'connections cut'
  | 'out of reach'
  | 'slow'
  | 'requests lost'
  | 'replies lost'
  | 'messages dropped'
  | 'notes of waits stay'
  | 'server clock stepped'
  | 'failover';

/** One strike. */
export interface PlannedFault {
  readonly at: number;
  readonly lasts: number;
  readonly kind: FaultKind;
  /** Decides whom it strikes, and how. */
  readonly seed: number;
}

/** The calls of one loop of a process are numbered; each has random numbers of its own. */
export type CallId = `${number}:${number}:${number}`;

/** All that may happen in one run, in a form that can be cut down. */
export interface Plan {
  readonly seed: number;
  readonly workers: number;
  readonly loops: number;
  /** ms in which calls begin and faults strike. */
  readonly duration: number;
  readonly leaseTime: number;
  /** Of each process, in turn; each has that of the plan without it. */
  readonly leaseTimes?: readonly number[] | undefined;
  /** The longest lease of a call, ms. Undefined: none is longer than those that last for a moment. */
  readonly longestCall?: number | undefined;
  /** ms after which the calls of the first process, and of no other one, may have such a lease. Undefined: all calls may. */
  readonly longCallsFrom?: number | undefined;
  /** The servers that each process knows, in turn. Undefined: all. */
  readonly sets?: readonly (readonly number[])[] | undefined;
  readonly habits: Habits;
  readonly locks: readonly LockSpec[];
  readonly faults: readonly PlannedFault[];
  /** Undefined: every call. */
  readonly calls?: ReadonlySet<CallId> | undefined;
}

/** What a dead process may keep a lock for. */
export const longestOf = ({ leaseTime, leaseTimes = [], longestCall = 0 }: Plan): number =>
  Math.max(leaseTime, longestCall, ...leaseTimes);

/** The plan as one process has it. */
export const planFor = (plan: Plan, worker: number): Plan => {
  const { leaseTimes = [], longCallsFrom, longestCall } = plan;
  return {
    ...plan,
    leaseTime: leaseTimes[worker % leaseTimes.length] ?? plan.leaseTime,
    longestCall: longCallsFrom === undefined || worker === 0 ? longestCall : undefined,
  };
};

const LASTS: Record<FaultKind, readonly [number, number]> = {
  'process killed': [50, 1_000],
  'process paused': [50, 2_500],
  'process stalls in a turn': [50, 2_200],
  'process clock stepped': [200, 2_000],
  'server paused': [50, 2_500],
  'server killed, restarted empty': [20, 1_500],
  'server killed, restarted with its data': [20, 1_500],
  'scripts forgotten': [0, 0],
  'memory full': [100, 1_500],
  'server clock stepped and returned': [200, 1_500],
  'majority of a hold killed, restarted empty': [300, 400],
  'minority out of reach of the first process': [8_000, 8_000],
  'bare majority of a hold killed, its holder out of reach': [3_000, 4_000],
  'data lost': [0, 0],
  'lock lost': [0, 0],
  'connections cut': [0, 0],
  'out of reach': [50, 1_500],
  slow: [100, 2_000],
  'requests lost': [100, 2_000],
  'replies lost': [100, 2_000],
  'messages dropped': [200, 3_000],
  'notes of waits stay': [1_500, 3_000],
  'server clock stepped': [200, 2_000],
  failover: [50, 500],
};

/** Strikes at random moments. */
export function faultsOf(
  kinds: readonly FaultKind[],
  random: Random,
  duration: number,
  strikes: number,
): PlannedFault[] {
  return Array.from({ length: kinds.length === 0 ? 0 : strikes }, () => {
    const kind = random.pick(kinds);
    return {
      at: random.next() * duration,
      lasts: random.between(...LASTS[kind]),
      kind,
      seed: random.between(0, 2 ** 31),
    };
  }).sort((a, b) => a.at - b.at);
}

export const randomOfCall = (seed: number, [worker, loop, call]: readonly [number, number, number]): Random =>
  new Random(
    Math.imul(seed + 1, 0x9e3779b1) ^
      Math.imul(worker * 64 + loop + 1, 0x85ebca6b) ^
      Math.imul(call + 1, 0xc2b2ae35),
  );
