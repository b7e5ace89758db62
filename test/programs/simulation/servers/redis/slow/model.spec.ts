import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { PreloadedClock } from '../../../../../support/preloaded-clock.js';
import { RedisServer, serverVersion } from '../../../../../support/redis-server.js';
import { times } from '../../../../../support/tier.js';
import { Random } from '../../../../chaos/random.js';
import { fewest } from '../../../shrink.js';
import { commandStep } from '../comparison/commands.js';
import { Comparison } from '../comparison/comparison.js';
import { loadAll, ownScript } from '../comparison/own-scripts.js';
import { BEGIN, listening, type Maker, type Step } from '../comparison/step.js';
import { Lua } from '../lua.js';

const SOURCE = fileURLToPath(new URL('comparison/standing-clock.c', import.meta.url));
/** More of them by MODEL_SEEDS. */
const SEEDS = Array.from({ length: Number(process.env.MODEL_SEEDS ?? times(1, 2)) }, (_, index) => index + 1);
const STEPS = times(600, 1_500);

/** Without a C compiler the clock of a real server cannot be made to stand, and other servers word their refusals otherwise. */
const clock = serverVersion().includes('v=7.0.') ? PreloadedClock.make(SOURCE, 'STANDING_CLOCK') : undefined;

let server: RedisServer;
let comparison: Comparison;
beforeAll(async () => {
  if (clock === undefined) return;
  server = await RedisServer.start({ env: clock.env, args: ['--enable-debug-command', 'yes'] });
  comparison = await Comparison.open(server.port, clock, await Lua.open());
});
afterAll(async () => {
  if (clock === undefined) return;
  comparison.close();
  await server.stop();
  clock.remove();
});

/** The clock mostly goes on by some ms, at times by seconds, and now and then back. */
function later(random: Random, at: number): number {
  const way = random.next();
  if (way < 0.3) return at;
  if (way < 0.9) return at + random.between(1, 90_000);
  return at + random.between(way < 0.98 ? 0 : -2_000_000, 2_000_000);
}

function stepsOf(seed: number, count: number, make: (maker: Maker) => Step): Step[] {
  const random = new Random(seed);
  let at = BEGIN;
  return Array.from({ length: count }, () => {
    at = later(random, at);
    const way = random.next();
    if (way < 0.05) return listening({ random, at });
    if (way < 0.055) return { connection: 0, at, command: ['SCRIPT', 'FLUSH'] };
    if (way < 0.06) return { connection: 0, at, command: random.pick(loadAll) };
    if (way < 0.075)
      return { connection: 0, at, command: ['CONFIG', 'SET', 'maxmemory', way < 0.065 ? '1' : '0'] };
    return make({ random, at });
  });
}

/** Fails with the fewest steps that were found to be answered in another way. */
async function compare(steps: readonly Step[]): Promise<void> {
  const difference = await comparison.differenceIn(steps);
  if (difference === undefined) return;
  const upTo = steps.slice(0, difference.index + 1);
  const few = await fewest(upTo, async (some) => (await comparison.differenceIn(some)) !== undefined);
  const { real, model } = (await comparison.differenceIn(few)) ?? difference;
  const shown = few.map(({ connection, at, command }) => {
    const words = command.map((text) => JSON.stringify(text.length > 200 ? `${text.slice(0, 200)}…` : text));
    return `${String(connection)} at ${String(at)}: ${words.join(' ')}`;
  });
  expect(`${shown.join('\n')}\n${model}`).toBe(`${shown.join('\n')}\n${real}`);
}

const describeWithClock = clock === undefined ? describe.skip : describe;

describeWithClock('the model of a Redis server', () => {
  it.each(SEEDS)('answers commands and short scripts as the server does (seed %i)', async (seed) => {
    await compare(stepsOf(seed, STEPS, commandStep));
  });

  it.each(SEEDS)('runs the scripts of the store as the server does (seed %i)', async (seed) => {
    await compare(stepsOf(seed, STEPS, ownScript));
  });

  it('runs them beside commands that put other things in their place', async () => {
    const either = (maker: Maker) => (maker.random.next() < 0.15 ? commandStep(maker) : ownScript(maker));
    await compare(stepsOf(9, STEPS, either));
  });

  it('is seen to differ where it does', async () => {
    const steps = [['PING'], ['CONFIG', 'GET', 'port'], ['PING']].map((command) => ({
      connection: 0,
      at: BEGIN,
      command,
    }));
    expect(await comparison.differenceIn(steps)).toMatchObject({ index: 1 });
  });
});
