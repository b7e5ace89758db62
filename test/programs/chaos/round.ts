import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { overlaps } from './checkers/exclusion.js';
import { isOfSeveral } from './checkers/severals.js';
import { Crew } from './crew.js';
import { type Concern, type Fault, InTheWay } from './faults/fault.js';
import { workerFaults } from './faults/workers.js';
import {
  type Attempt,
  type FaultInterval,
  type History,
  holdsOf,
  type Kind,
  type Process,
  type PromiseNote,
  readJournalFile,
  type ToldDeadlock,
  type Violation,
} from './history.js';
import { judge } from './judge.js';
import type { Random } from './random.js';
import { Resource, SCRIPTS } from './resource.js';
import type { Planned } from './schedule.js';
import { count, type Strikes } from './strikes.js';
import type { Stage, Topology } from './topologies/topology.js';
import { mayStay } from '../../support/keys.js';

/** What the locks are taken with where nothing else is wanted: short enough that faults outlast it. */
const LEASE = 1_500;
/** How long the store keeps a grant that its waiter has not confirmed. */
const CLAIM = 1_000;
/** ms: a step of it alone may take a minute before it tells. */
const HEALING = 90_000;

export interface RoundOptions {
  readonly topology: Topology;
  readonly random: Random;
  /** ms in which faults strike. */
  readonly duration: number;
  readonly schedule: (faults: readonly Fault[], random: Random, duration: number) => Planned[];
  /** URL of the package's entry. */
  readonly package: string;
  readonly workers?: number;
  readonly loops?: number;
  readonly habits?: Readonly<Record<string, number>>;
  /** @default one of each kind that the topology can have, and another plain one */
  readonly locks?: readonly LockSpec[];
  /** Elections, travelling leases and work once per period, in place of the loops. */
  readonly promises?: boolean;
  /** ms that the locks are taken with. */
  readonly leaseTime?: number;
}

export interface RoundResult {
  readonly violations: Violation[];
  readonly acquisitions: number;
  /** How many calls were granted several locks at once. */
  readonly ofSeveral: number;
  /** What was noted of elections, travelling leases and work once per period. */
  readonly notes: number;
  /** How many callers were told of a deadlock. */
  readonly deadlocks: number;
  readonly handedOver: number;
  readonly losses: number;
  /** Overlaps that a loss of data explains, and the writes that the resource refused. */
  readonly expected: { overlaps: number; refused: number };
  readonly strikes: Strikes;
  /** Kept where something was wrong. */
  readonly journals: string | undefined;
}

const now = () => Number(process.hrtime.bigint()) / 1e6;

export interface LockSpec {
  readonly name: string;
  readonly kind: Kind;
  readonly permits?: number;
}

const LOCKS: readonly LockSpec[] = [
  { name: 'plain', kind: 'lock' },
  { name: 'busy', kind: 'lock' },
  { name: 'fair', kind: 'fair' },
  { name: 'read-write', kind: 'read-write' },
  { name: 'permits', kind: 'semaphore', permits: 3 },
];

/** One life of a deployment and its clients: they work, faults strike and heal, all finish, the checkers judge. */
export async function round(options: RoundOptions): Promise<RoundResult> {
  const {
    topology,
    random,
    duration,
    workers = 4,
    habits = {},
    leaseTime = LEASE,
    promises = false,
  } = options;
  const loops = promises ? 0 : (options.loops ?? 6);
  const directory = await mkdtemp(join(tmpdir(), 'lock-chaos-'));
  const resource = await Resource.start();
  const stage = await topology.start(workers);
  const locks = (options.locks ?? LOCKS).filter(({ kind }) => kind === 'lock' || stage.queues);
  const crew = new Crew(directory, (worker) => ({
    package: options.package,
    options: { leaseTime, ...stage.optionsFor(worker) },
    resource: resource.url,
    scripts: SCRIPTS,
    seed: random.between(0, 2 ** 31),
    locks,
    loops,
    promises,
    lease: leaseTime,
    habits,
  }));
  const canary = watchOver(() => resource.ping());
  const server = watchOver(() => stage.ping());
  try {
    await crew.start(workers);
    const faults = [...stage.faults, ...workerFaults(crew)];
    const names = locks.map(({ name }) => name);
    const { intervals, strikes } = await strikeAll(
      options.schedule(faults, random, duration),
      names,
      duration,
    );
    await persist(() => stage.heal());
    const healed = now();
    const recovery = leaseTime + CLAIM + stage.failover;
    // Everybody comes back to work before the end.
    await sleep(1_000);
    const commands = await stage.commands();
    const perProcess = loops * stage.perDead;
    const hanging = await crew.drain(recovery + 15_000 + crew.killed * perProcess);
    const drained = now();
    const left = await settled(stage, leaseTime + CLAIM + 1_000);

    const attempts: Attempt[] = [];
    const notes: PromiseNote[] = [];
    const deadlocks: ToldDeadlock[] = [];
    const processes = new Map<string, Process>([['canary', canary.process]]);
    for (const [name, journal] of crew.journals) {
      const read = readJournalFile(name, journal);
      attempts.push(...read.attempts);
      notes.push(...read.notes);
      deadlocks.push(...read.deadlocks);
      processes.set(name, read.process);
    }
    const updates = (await Promise.all(names.map((name) => resource.updates(name)))).flat();
    const refused = (await Promise.all(names.map((name) => resource.refused(name)))).reduce(
      (a, b) => a + b,
      0,
    );
    const history: History = {
      attempts,
      processes,
      server: server.process,
      faults: intervals,
      updates,
      healed,
      drained,
      residue: { ...left, hanging },
      queues: stage.queues,
      confirmed: stage.confirmed === true,
      deadlocks,
      notes: promises ? notes : undefined,
      commands,
    };
    const violations = await judge(history, { recovery, prompt: 300, perDead: stage.perDead });
    const holds = holdsOf(attempts);
    // A round in which nothing happens would find nothing.
    if (holds.length + notes.length === 0)
      violations.push({ checker: 'idle', at: drained, message: 'nobody was granted anything' });
    count(strikes, 'callers', 'caller aborts', attempts.filter(isAborted).length);
    return {
      violations,
      acquisitions: holds.length,
      ofSeveral: new Set(
        holds.filter(isOfSeveral).map(({ process, several }) => `${process} ${String(several)}`),
      ).size,
      notes: notes.length,
      deadlocks: deadlocks.length,
      handedOver: holds.length - new Set(holds.map(({ owner }) => owner)).size,
      losses: holds.filter(({ lost }) => lost !== undefined).length,
      expected: { overlaps: overlaps(history).filter(({ explainedBy }) => explainedBy).length, refused },
      strikes,
      journals: violations.length > 0 ? directory : undefined,
    };
  } finally {
    canary.stop();
    server.stop();
    await crew.drain(0);
    await stage.stop();
    await resource.stop();
    if (process.env.CHAOS_KEEP === undefined) await rm(directory, { recursive: true, force: true });
  }
}

/**
 * What this process and a server that nothing strikes take for an answer is what the machine takes; what the locks'
 * own servers take besides is what their disk takes.
 */
function watchOver(ping: () => Promise<unknown>): { process: Process; stop(): void } {
  const process: Process = { name: 'canary', lags: [], lastSeen: Infinity, ended: true, errors: [] };
  let stopped = false;
  const watch = async () => {
    while (!stopped) {
      const from = now();
      await sleep(10);
      // At the end of the round it stops.
      await ping().catch(() => undefined);
      if (now() - from > 30) process.lags.push({ from: from + 10, to: now() });
    }
  };
  void watch();
  return { process, stop: () => (stopped = true) };
}

/** Strikes as planned, and returns when everything is healed. */
async function strikeAll(
  schedule: readonly Planned[],
  locks: readonly string[],
  duration: number,
): Promise<{ intervals: FaultInterval[]; strikes: Strikes }> {
  const begin = now();
  const intervals: FaultInterval[] = [];
  const strikes: Strikes = {};
  const all = schedule.map(async ({ at, lasts, fault, random }) => {
    await sleep(at);
    const concern: Concern = {};
    const from = now();
    try {
      const heal = await fault.strike({ random, concern, locks });
      count(strikes, fault.group, fault.name);
      await sleep(lasts);
      await persist(heal);
      // A server looks at its clock and its settings once per round of its event loop.
      await sleep(50);
    } catch (error) {
      // Another fault was in its way, such as a server that is down. It may have struck all the same.
      if (error instanceof InTheWay) return;
      if (process.env.CHAOS_DEBUG !== undefined) console.error(fault.name, error);
    }
    intervals.push({ fault: fault.name, severity: fault.severity, from, to: now(), ...concern });
  });
  await Promise.all(all);
  await sleep(Math.max(0, begin + duration - now()));
  return { intervals, strikes };
}

/** Healing must succeed, whatever else is broken at the moment; what can never heal ends the run, and says why. */
async function persist(heal: () => unknown): Promise<void> {
  const end = now() + HEALING;
  for (;;) {
    try {
      await heal();
      return;
    } catch (error) {
      if (now() > end) throw error;
      await sleep(100);
    }
  }
}

/** Looks until nothing is left that must not be, or the time is over in which leases end by themselves. */
async function settled(stage: Stage, patience: number): ReturnType<Stage['residue']> {
  const end = now() + patience;
  for (;;) {
    const left = await stage.residue();
    const clean = left.keys.every(({ key }) => mayStay(key)) && left.channels.length + left.clients === 0;
    if (clean || now() > end) return left;
    await sleep(50);
  }
}

const isAborted = ({ refusal }: Attempt) => refusal === 'LOCK_ABORTED';
