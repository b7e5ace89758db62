import { type Violation, type History, type Process, readLines, holdsOf } from '../chaos/history.js';
import { check } from '../chaos/checkers/index.js';
import { Cast, type Topology } from './cast.js';
import { answers } from './checkers/answers.js';
import { longestOf, type Plan } from './plan.js';
import { SimulatedResource } from './resource.js';
import { MemoryServer } from './servers/memory-server.js';
import { RedisServer } from './servers/redis/redis-server.js';
import { strikeAll } from './strikes.js';
import { Actor } from './world/actor.js';
import type { Program } from './world/program.js';
import { World } from './world/world.js';

/** How long the store keeps a grant that its waiter has not confirmed. */
const CLAIM = 1_000;
/** A run that has so many events goes in a circle. */
const MOST_EVENTS = 400_000;

const NOTHING: History = {
  attempts: [],
  processes: new Map(),
  server: { lags: [] },
  faults: [],
  updates: [],
  healed: 0,
  drained: 0,
  residue: undefined,
  queues: true,
  confirmed: false,
  commands: undefined,
};

export interface RunResult {
  readonly violations: Violation[];
  readonly events: number;
  readonly acquisitions: number;
  /** ms of virtual time. */
  readonly time: number;
  /** The same for two runs in which the same happened. */
  readonly digest: string;
  readonly history: History;
  /** A line for all that a process has noted, in the order of time. */
  readonly journal: () => string;
}

/** One life of a deployment and its clients. The same plan gives the same result. */
export async function run(plan: Plan, topology: Topology, program: Program): Promise<RunResult> {
  Actor.restart();
  MemoryServer.restart();
  RedisServer.restart();
  const world = new World(plan.seed);
  const resource = new SimulatedResource();
  const stray: string[] = [];
  const onRejection = (reason: unknown) => stray.push(`unhandled rejection: ${String(reason)}`);
  process.on('unhandledRejection', onRejection);
  try {
    let history: History | undefined;
    const cast = new Cast(world, plan, topology, program, resource);
    const life = live(world, cast, plan, topology).then(
      (lived) => (history = { ...lived, updates: resource.updates }),
    );
    life.catch((error: unknown) => {
      world.failure ??= error as Error;
    });
    await world.run(() => history !== undefined, MOST_EVENTS);
    const { events, time } = world;
    for (const { name, journal } of cast.members) world.digest.text(name + journal.texts.join(''));
    const digest = world.digest.value;
    if (history === undefined) {
      const message = `it was not over after ${String(events)} events, at ${time.toFixed(0)} ms`;
      const violations = [{ checker: 'events', at: time, message }];
      return {
        violations,
        events,
        acquisitions: 0,
        time,
        digest,
        history: NOTHING,
        journal: () => journalOf(cast),
      };
    }
    const [first] = history.processes.values();
    first?.errors.push(...stray);
    const recovery = longestOf(plan) + CLAIM + (topology.forgives ? 3_000 : 1_000);
    const bounds = { recovery, prompt: 300, perDead: 0 };
    return {
      violations: [...check(history, bounds), ...answers(history)],
      events,
      acquisitions: holdsOf(history.attempts).length,
      time,
      digest,
      history,
      journal: () => journalOf(cast),
    };
  } finally {
    process.off('unhandledRejection', onRejection);
  }
}

function journalOf({ members }: Cast): string {
  const lines = members.flatMap(({ name, journal }) =>
    journal.texts.map((text, index) => ({ at: journal.lines[index]?.at ?? 0, text: `${name} ${text}\n` })),
  );
  return lines
    .sort((a, b) => a.at - b.at)
    .map(({ text }) => text)
    .join('');
}

async function live(
  world: World,
  cast: Cast,
  plan: Plan,
  topology: Topology,
): Promise<Omit<History, 'updates'>> {
  const [faults] = await Promise.all([strikeAll(plan.faults, cast), world.sleep(plan.duration)]);
  const healed = world.time;
  // All come back to work before the end.
  await world.sleep(1_000);
  const commands = cast.servers.reduce((sum, server) => sum + server.commands, 0);
  cast.drain();
  const patience = longestOf(plan) + CLAIM + 18_000;
  const drainedAt = world.time;
  while (cast.hanging.length > 0 && world.time < drainedAt + patience) await world.sleep(20);
  const hanging = cast.hanging;
  const drained = world.time;
  const left = () => cast.servers.map((server) => server.left);
  const isClean = () => left().every(({ locks, connections }) => locks.length + connections === 0);
  while (!isClean() && world.time < drained + longestOf(plan) + CLAIM + 1_000) await world.sleep(50);
  const processes = new Map<string, Process>();
  const attempts = cast.members.flatMap(({ name, record, journal }) => {
    const read = readLines(name, journal.lines);
    processes.set(name, { ...record, errors: [...record.errors, ...read.process.errors] });
    return read;
  });
  const lags = topology.queues ? cast.servers.flatMap(({ allLags }) => allLags) : [];
  return {
    attempts: attempts.flatMap((read) => read.attempts),
    deadlocks: attempts.flatMap((read) => read.deadlocks),
    processes,
    server: { lags: [...lags] },
    faults,
    healed,
    drained,
    residue: {
      keys: left().flatMap(({ locks }) => locks.map((key) => ({ key, ttl: 1 }))),
      channels: [],
      clients: left().reduce((sum, { connections }) => sum + connections, 0),
      hanging,
    },
    queues: topology.queues,
    confirmed: topology.confirmed,
    // A release on a quorum makes every process race for all nodes, and what fails there is taken back from each of them.
    commands: topology.queues ? commands : commands / cast.servers.length / cast.size / 2,
  };
}
