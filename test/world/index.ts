import { relative } from 'node:path';
import { expect } from '@jest/globals';
import { Lua } from '../programs/simulation/servers/redis/lua.js';
import { RedisServer } from '../programs/simulation/servers/redis/redis-server.js';
import { Actor } from '../programs/simulation/world/actor.js';
import { World } from '../programs/simulation/world/world.js';
import { type ProcessOptions, WorldProcess } from './process.js';
import { WorldServer } from './server.js';

export type { ProcessOptions, WorldProcess, WorldServer };

/** A run that has so many events goes in a circle. */
const MOST_EVENTS = 200_000;

export interface WorldOptions {
  /** How many servers there are, with Redlock where there are several. @default 1 */
  readonly servers?: number;
  /** The server has a replica. @default false */
  readonly replica?: boolean;
  /** Options of all processes. */
  readonly options?: ProcessOptions;
}

/** What a script does with a world. */
export interface Stage {
  readonly world: World;
  /** The first server. */
  readonly server: WorldServer;
  readonly servers: readonly WorldServer[];
  /** Starts a process, whose `locks` is its service. */
  process(options?: ProcessOptions): WorldProcess;
  /** ms of virtual time since the beginning, which no process sees. */
  now(): number;
  /** Lets this time pass, ms. */
  pass(time: number): Promise<void>;
  /** Waits until this moment, ms since the beginning. */
  at(moment: number): Promise<void>;
  /** Waits until something is so, which is looked at each ms of virtual time. */
  until(condition: () => unknown): Promise<void>;
}

/** What is the same for two runs in which the same happened. */
export interface WorldRun {
  readonly digest: string;
  readonly events: number;
  /** ms of virtual time. */
  readonly time: number;
}

let lua: Lua | undefined;
let last: Promise<unknown> = Promise.resolve();

/**
 * Runs a script in a world of its own: processes with the package, clients of Redis and servers with the real scripts, in virtual
 * time. The seed decides latencies, clocks and random numbers, so that the same seed gives the same run. A script waits for
 * promises of processes and of the stage, and for nothing real. WORLD_SEED=8 replaces the seed, and WORLD_SEEDS=100 runs a
 * hundred from the seed on, to look for one that fails.
 */
export async function inWorld(
  seed: number,
  script: (stage: Stage) => Promise<unknown>,
  options: WorldOptions = {},
): Promise<WorldRun> {
  const first = Number(process.env.WORLD_SEED ?? seed);
  const count = Number(process.env.WORLD_SEEDS ?? 1);
  let result: WorldRun | undefined;
  for (let index = 0; index < count; index++) {
    // One world after the other: actors and servers are numbered from the beginning in each.
    const before = last;
    const run = before.then(() => runOnce(first + index, script, options));
    last = run.catch(() => undefined);
    result = await run;
  }
  return result!;
}

async function runOnce(
  seed: number,
  script: (stage: Stage) => Promise<unknown>,
  { servers: count = 1, replica = false, options }: WorldOptions,
): Promise<WorldRun> {
  lua ??= await Lua.open();
  Actor.restart();
  RedisServer.restart();
  const world = new World(seed);
  const servers = Array.from(
    { length: count },
    (_, index) => new WorldServer(world, `server ${String(index)}`, lua!, replica),
  );
  let processes = 0;
  const stage: Stage = {
    world,
    server: servers[0]!,
    servers,
    process: (own) =>
      new WorldProcess(world, `process ${String(++processes)}`, servers, { ...options, ...own }),
    now: () => world.time,
    pass: (time) => world.sleep(time),
    at: (moment) => world.sleep(moment - world.time),
    until: async (condition) => {
      while (!(await condition())) await world.sleep(1);
    },
  };
  let ended = false as boolean;
  try {
    const life = Promise.resolve(world.sleep(0)).then(() => script(stage));
    life.then(
      () => (ended = true),
      () => (ended = true),
    );
    await world.run(() => ended, MOST_EVENTS);
    if (!ended)
      throw new Error(
        world.events >= MOST_EVENTS
          ? `The script has not ended after ${String(MOST_EVENTS)} events: it waits for what does not happen.`
          : 'Nothing is left to happen, and the script still waits: for a dead process, or for something real.',
      );
    await life;
    return { digest: world.digest.value, events: world.events, time: world.time };
  } catch (error) {
    throw withCommand(error, seed, world);
  }
}

/** The error, with the seed and the command that repeats the run. */
function withCommand(error: unknown, seed: number, world: World): unknown {
  if (!(error instanceof Error)) return error;
  const { testPath = '', currentTestName = '' } = expect.getState();
  const file = relative(process.cwd(), testPath);
  const title = currentTestName.replaceAll("'", "'\\''").replaceAll(/[$()*+.?[\\\]^{|}]/g, '\\$&');
  const place = `\n\nSeed ${String(seed)}, after ${world.time.toFixed(1)} ms of virtual time. Repeat it with\n`;
  const command = `WORLD_SEED=${String(seed)} npm test -- ${file} -t '${title}'`;
  const { message, stack = '' } = error;
  error.message = message + place + command;
  error.stack = stack.replace(message, () => error.message);
  return error;
}
