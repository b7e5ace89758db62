import { getEventListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import type { Lease, Lock } from '../../../lib/index.js';
import { Stage, until } from '../../pitfalls/stage.js';
import { FAIR, type Kind, lockOf, READ, semaphore, take, WRITE } from '../kinds.js';
import { fenceOf, roleOf } from '../../support/keys.js';

const stage = Stage.set();
const SEED = 20_261_120;

/** Small, good enough, and the same in every run (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const NAMES: [string, readonly Kind[]][] = [
  ['fair:1', [FAIR]],
  ['fair:2', [FAIR]],
  ['rw:1', [READ, READ, WRITE]],
  ['rw:2', [READ, WRITE]],
  ['permits:3', [semaphore(3)]],
  ['permits:1', [semaphore(1)]],
];

/** Of this process: what would keep it alive. */
const timers = () => process.getActiveResourcesInfo().filter((type) => type === 'Timeout').length;

const OPERATIONS = 10_000;
const LOOPS = 40;
const KILLS = 20;

it('after 10,000 random operations and 20 kills nothing is left but fences, and every key had a TTL at all times', async () => {
  const random = randomFrom(SEED);
  const pick = <T>(of: readonly T[]): T => of[Math.floor(random() * of.length)]!;
  const given = stage.client();
  const listeners = () => given.eventNames().map((event) => [event, given.listenerCount(event)]);
  const listenersBefore = listeners();
  const services = [stage.service(), stage.service({ connection: given })];
  for (const service of services) await service.getFairLock('fair:1').using(() => undefined);
  const timersBefore = timers();

  /** Who is inside at present, by name; what the rules say is checked at each entry. */
  const inside = new Map<string, { kind: Kind; lease: Lease }[]>();
  const violations: string[] = [];
  const outcomes = { held: 0, aborted: 0, timedOut: 0, killed: 0 };
  async function hold(lock: Lock, kind: Kind, ms: number, options: object): Promise<void> {
    const lease = await lock.tryAcquire(options);
    if (lease === null) {
      outcomes.timedOut++;
      return;
    }
    const all = inside.get(lock.name) ?? [];
    inside.set(lock.name, all);
    // Those who know that they have lost it, because this process was too slow, are inside no more.
    const others = all.filter((other) => other.lease.held).map((other) => other.kind);
    const room = kind === READ ? Infinity : (kind.permits ?? 1);
    if (others.length >= room || (kind === READ && others.includes(WRITE))) violations.push(lock.name);
    const entry = { kind, lease };
    all.push(entry);
    await sleep(ms);
    all.splice(all.indexOf(entry), 1);
    await lease.release();
    outcomes.held++;
  }

  const withoutEnd: string[] = [];
  const over = new AbortController();
  async function watch(): Promise<void> {
    while (!over.signal.aborted) {
      for (const key of await stage.redis.keys('*')) {
        if ((await stage.redis.pttl(key)) === -1) withoutEnd.push(key);
      }
      await sleep(5);
    }
  }
  const watching = watch();

  /** Never aborted, and shared by many: what listens to it has to go each time. */
  const shared = new AbortController();
  const signals: AbortSignal[] = [shared.signal];
  async function operate(count: number): Promise<void> {
    for (let n = 0; n < count; n++) {
      const [name, kinds] = pick(NAMES);
      const kind = pick(kinds);
      const abortion = random() < 0.3 ? new AbortController() : undefined;
      if (abortion !== undefined) signals.push(abortion.signal);
      const options = {
        // The longest is longer than the test waits below: nobody may have to run out of it.
        waitTime: pick([0, 1, 5, 20, 60_000]),
        signal: (abortion ?? shared).signal,
        ...(random() < 0.3 && { leaseTime: pick([20_000, 60_000]) }),
      };
      const timer = setTimeout(() => abortion?.abort(), random() * 15);
      await hold(lockOf(pick(services), name, kind), kind, random() * 4, options).catch((error: unknown) => {
        const { code } = error as { code?: string };
        if (code === 'LOCK_ABORTED') outcomes.aborted++;
        // Where the machine is so busy that the server does not answer in the time there is.
        else if (code === 'LOCK_UNAVAILABLE') outcomes.timedOut++;
        else throw error;
      });
      clearTimeout(timer);
    }
  }

  /** Processes that hold a lock, and stand in each queue, when they are killed. */
  async function killSome(count: number): Promise<void> {
    for (let n = 0; n < count; n++) {
      const worker = await stage.worker({ leaseTime: 500 });
      for (const [name, kinds] of NAMES) {
        void worker.call('race', name, 5, { ...pick(kinds), waitTime: Infinity }, random() * 10);
      }
      const [name, kinds] = pick(NAMES);
      await take(worker, name, pick(kinds), { waitTime: Infinity });
      await sleep(random() * 50);
      await worker.kill();
      outcomes.killed++;
    }
  }
  const survivor = await stage.worker({ leaseTime: 500 });
  const races = NAMES.map(([name, kinds]) => survivor.call('race', name, 20, { ...pick(kinds) }, 2));
  const kills = [killSome(KILLS / 2), killSome(KILLS / 2)];
  await Promise.all(Array.from({ length: LOOPS }, () => operate(OPERATIONS / LOOPS)));
  await Promise.all([...races, ...kills]);
  // Whoever was killed while they waited have been left where they stood; the next who comes finds them.
  for (const [name, [kind]] of NAMES) await lockOf(services[0]!, name, kind!).using(() => undefined);

  expect(violations).toEqual([]);
  const fences = NAMES.map(([name]) => fenceOf(`lock:${name}`));
  // Processes that had waited for long have told what they are called.
  const stays = (key: string) => fences.includes(key) || roleOf(key) === 'label';
  await until(async () => (await stage.redis.keys('*')).every(stays));
  over.abort();
  await watching;
  expect(withoutEnd).toEqual([]);
  // Each of them has happened, and often.
  expect(Math.min(outcomes.held, outcomes.aborted, outcomes.timedOut)).toBeGreaterThan(OPERATIONS / 20);
  expect(outcomes.killed).toBe(KILLS);

  expect(signals.filter((signal) => getEventListeners(signal, 'abort').length > 0)).toEqual([]);
  await until(() => timers() <= timersBefore);
  // It ends by itself, so that no timer of its own is left either.
  await survivor.stop();
  for (const service of services) {
    expect(await service.health()).toMatchObject({ held: 0, waiting: 0, renewalHeadroom: undefined });
    // One subscription for all places of a process.
    expect((await stage.redis.pubsub('CHANNELS')).length).toBeLessThanOrEqual(2);
    await service.onApplicationShutdown();
  }
  await until(async () => (await stage.redis.pubsub('CHANNELS')).length === 0);
  expect(listeners()).toEqual(listenersBefore);
});
