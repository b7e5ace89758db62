import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import {
  type DeadlockStep,
  type LockEvent,
  type LockModuleOptions,
  LockService,
} from '../../../../lib/index.js';
import { stateOf } from '../../../../lib/lock.service.state.js';
import { roleOf } from '../../../support/keys.js';
import { RedisServer } from '../../../support/redis-server.js';
import { Worker } from '../../../support/worker.js';
import { until } from '../../../scenarios/until.js';

interface Asked {
  name: string | string[];
  kind?: 'fair' | 'read' | 'write' | 'semaphore';
  permits?: number;
  label?: string;
  waitTime?: number;
}
interface Outcome {
  asked: number;
  ended: number;
  reason?: string;
  cycle?: DeadlockStep[];
}
type Deadlock = Extract<LockEvent, { type: 'deadlock' }>;

let server: RedisServer;
let redis: Redis;
let workers: Worker[];

beforeAll(async () => {
  server = await RedisServer.start();
  redis = new Redis(server.url);
});
afterAll(async () => {
  await redis.quit();
  await server.stop();
});
afterEach(async () => {
  await Promise.all(workers.map((worker) => worker.kill()));
  await redis.flushall();
});

async function start(
  count: number,
  service: Partial<LockModuleOptions> = {},
  url: string | string[] = server.url,
) {
  workers = await Promise.all(
    Array.from({ length: count }, (_, n) =>
      Worker.start({ url, service: { label: `api-${String(n + 1)}`, lockOrder: 'off', ...service } }),
    ),
  );
  return workers;
}

const nest = (worker: Worker | undefined, first: Asked, second: Asked, gap: number, hold = 0) =>
  worker!.call<Outcome>('nest', first, { waitTime: 8_000, ...second }, gap, hold);
const deadlocksOf = (worker: Worker | undefined) => worker!.call<Deadlock[]>('deadlocks');
const notes = async () => (await redis.keys('*')).filter((key) => roleOf(key) === 'waits');

/** What each look of an observer shows until the waits are over. */
async function looksOf(observer: LockService, names: string[], over: Promise<unknown>) {
  const looks: (readonly (readonly DeadlockStep[])[])[] = [];
  const end = over.then(() => true);
  do looks.push(await stateOf(observer)!.lookForDeadlocks(names));
  while (!(await Promise.race([end, sleep(100, false)])));
  return looks;
}

describe('processes that wait for each other', () => {
  it('one of them ends, the others go on, and each of them is told', async () => {
    const [one, two] = await start(2);
    const [first, second] = await Promise.all([
      nest(one, { name: 'order:7', label: 'order' }, { name: 'stock:7', label: 'stock' }, 100),
      nest(two, { name: 'stock:7', label: 'stock' }, { name: 'order:7', label: 'order' }, 800),
    ]);
    // Of the two the one that waits for a shorter time.
    expect([first.reason, second.reason]).toEqual([undefined, 'deadlock']);
    const cycle = [
      { name: 'order:7', label: 'order', process: 'api-2' },
      { name: 'stock:7', label: 'stock', process: 'api-1' },
    ];
    expect(second.cycle).toEqual(cycle);
    expect(await deadlocksOf(one)).toEqual([
      { type: 'deadlock', name: 'stock:7', label: 'stock', cycle: cycle.toReversed(), broken: false },
    ]);
    expect(await deadlocksOf(two)).toEqual([
      { type: 'deadlock', name: 'order:7', label: 'order', cycle, broken: true },
    ]);
    // Far from the wait time of 8 s; the page says 2 s, on a machine that is not busy.
    expect(second.ended - second.asked).toBeLessThan(5_000);
    await until(async () => (await notes()).length === 0);
  });

  it('in circles of four processes and of several kinds at once', async () => {
    const all = await start(4);
    const circle: Asked[] = [
      { name: 'a', kind: 'fair' },
      { name: 'b', kind: 'write' },
      { name: ['c', 'd'] },
      { name: 'e', kind: 'semaphore', permits: 1 },
    ];
    const side: Asked = { name: 'rw', kind: 'read' };
    const outcomes = await Promise.all([
      ...all.map((worker, n) => nest(worker, circle[n]!, circle[(n + 1) % 4]!, 800 + 20 * n)),
      // A second circle beside it, of two of the same processes: one of two readers in the way is enough.
      nest(all[0], side, { name: 'x' }, 800),
      nest(all[1], side, { name: 'free' }, 800, 2_000),
      nest(all[2], { name: 'x' }, { ...side, kind: 'write' }, 850),
    ]);
    const reasons = outcomes.map(({ reason }) => reason);
    expect(reasons.slice(0, 4).filter((reason) => reason === 'deadlock')).toHaveLength(1);
    expect(reasons[5]).toBeUndefined();
    expect([reasons[4], reasons[6]].filter((reason) => reason === 'deadlock')).toHaveLength(1);
    expect(reasons.filter((reason) => reason === undefined)).toHaveLength(5);
  });

  it('beside many callers that only wait long', async () => {
    const [one, two] = await start(2);
    const stranger = '6b1b2f5c-6f0a-4a0a-9d7e-000000000000';
    const many = [];
    for (let n = 0; n < 100; n++) {
      await redis.hset(`lock:hot:${String(n)}`, `${stranger}:1`, 1);
      await redis.pexpire(`lock:hot:${String(n)}`, 20_000);
      const hot = { name: `hot:${String(n)}` };
      many.push(nest(n % 2 === 0 ? one : two, { name: `own:${String(n)}` }, hot, 0));
    }
    const outcomes = await Promise.all([
      nest(one, { name: 'a' }, { name: 'b' }, 300),
      nest(two, { name: 'b' }, { name: 'a' }, 350),
    ]);
    expect(outcomes.filter(({ reason }) => reason === 'deadlock')).toHaveLength(1);
    for (let n = 0; n < 100; n++) await one!.call('forceRelease', `hot:${String(n)}`);
    expect((await Promise.all(many)).filter(({ reason }) => reason !== undefined)).toEqual([]);
  });

  it('is told and not ended where a process only reports, and nothing is written of short waits or of waits alone', async () => {
    const [one, two] = await start(2, { deadlock: 'report' });
    const observer = new LockService({ connection: server.url });
    const held = nest(one, { name: 'c' }, { name: 'd' }, 0, 900);
    await sleep(50);
    const alone = two!.call('holdFor', 'c', { waitTime: 8_000 }, 0);
    await sleep(750);
    expect(await notes()).toEqual([]);
    await Promise.all([held, alone]);
    const deadlocked = Promise.all([
      nest(one, { name: 'a' }, { name: 'b', waitTime: 2_600 }, 100),
      nest(two, { name: 'b' }, { name: 'a', waitTime: 3_000 }, 100),
    ]);
    const looks = looksOf(observer, ['a', 'b'], deadlocked);
    const outcomes = await deadlocked;
    const [first, ...others] = (await looks).filter((found) => found.length > 0);
    expect(
      first
        ?.flat()
        .map(({ name, process }) => `${process} ${name}`)
        .sort(),
    ).toEqual(['api-1 b', 'api-2 a']);
    expect(others.every((found) => found.length === 1)).toBe(true);
    expect(await stateOf(observer)!.lookForDeadlocks(['a', 'b'])).toEqual([]);
    await observer.close();
    expect(outcomes.map(({ reason }) => reason)).toEqual(['timeout', undefined]);
    expect([(await deadlocksOf(one)).length, (await deadlocksOf(two)).length]).toEqual([1, 1]);
  });
});

it('a user that may not write what waits is told that deadlocks over processes are not found, once', async () => {
  workers = [];
  await redis.call('ACL', 'SETUSER', 'narrow', 'on', '>pw', '~lock:[ab]*', '&*', '+@all');
  const url = `redis://narrow:pw@127.0.0.1:${String(server.port)}`;
  const [one, two] = [1, 2].map(() => new LockService({ connection: url, lockOrder: 'off' }));
  const told: string[] = [];
  one!.events$.subscribe((event) => event.type === 'warning' && told.push(`${event.code} ${event.message}`));
  const lease = await two!.acquire('b');
  // A note that is refused is tried again after two seconds.
  const waiting = one!.using('a', () => one!.acquire('b', { waitTime: 2_900 }));
  await expect(waiting).rejects.toMatchObject({ reason: 'timeout' });
  await lease.release();
  expect(told).toEqual([expect.stringMatching(/^deadlock-notes .*NOPERM/)]);
  await Promise.all([one!.close(), two!.close()]);
});

describe('a break without a deadlock', () => {
  it('does not happen for a note that stays although its wait has ended, or its process has stopped', async () => {
    const [one, two] = await start(2);
    const first = nest(two, { name: 'b' }, { name: 'a' }, 50);
    await sleep(20);
    const second = nest(one, { name: 'a' }, { name: 'b' }, 700);
    await until(async () => (await notes()).length > 0);
    // Its note says that it waits. From here on it may have ended in any way.
    two!.freeze();
    const [key = ''] = await notes();
    const note = (await redis.get(key)) ?? '';
    const kept = setInterval(() => void redis.set(key, note), 50);
    const observer = new LockService({ connection: server.url });
    const looks = await looksOf(observer, ['a', 'b'], sleep(1_600));
    await observer.close();
    expect(looks.flat()).toEqual([]);
    expect(await deadlocksOf(one)).toEqual([]);
    clearInterval(kept);
    two!.thaw();
    const outcomes = await Promise.all([first, second]);
    expect(outcomes.map(({ reason }) => reason).sort()).toEqual(['deadlock', undefined].sort());
  });

  it('does not come from what is no note', async () => {
    const [one] = await start(1);
    const stranger = '6b1b2f5c-6f0a-4a0a-9d7e-000000000000';
    await redis.hset('lock:b', `${stranger}:1`, 1);
    await redis.pexpire('lock:b', 20_000);
    const waiting = nest(one, { name: 'a' }, { name: 'b', waitTime: 1_700 }, 0);
    await until(async () => (await notes()).length > 0);
    const [own = ''] = await notes();
    const owner = (await redis.hkeys('lock:a'))[0] ?? '';
    const wait = {
      id: '1',
      since: 1,
      name: 'a',
      label: '',
      mode: 'exclusive',
      holds: [`${stranger}:1`],
      breaks: true,
    };
    const texts = [
      'no JSON',
      'null',
      JSON.stringify({ version: 2, process: 'p', stamp: 1, waits: [wait] }),
      JSON.stringify({ version: 1, process: 'p', stamp: 1, waits: [{ ...wait, holds: 'x' }] }),
      // Its stamp never grows.
      JSON.stringify({ version: 1, process: 'p', stamp: 9, waits: [wait] }),
    ];
    expect(owner).not.toBe('');
    const key = own.replace(/waits:.*/, `waits:${stranger}`);
    for (let n = 0; n < 12; n++) {
      await redis.set(key, texts[Math.min(n, texts.length - 1)] ?? '');
      await sleep(80);
    }
    expect(await waiting).toMatchObject({ reason: 'timeout' });
    expect(await deadlocksOf(one)).toEqual([]);
  });
});

describe('Redlock', () => {
  it('finds a deadlock by the notes that a majority has', async () => {
    const nodes = await Promise.all([1, 2, 3].map(() => RedisServer.start()));
    try {
      const [one, two] = await start(
        2,
        {},
        nodes.map(({ url }) => url),
      );
      const outcomes = await Promise.all([
        nest(one, { name: 'a' }, { name: 'b' }, 100),
        nest(two, { name: 'b' }, { name: 'a' }, 200),
      ]);
      expect(outcomes.map(({ reason }) => reason)).toEqual([undefined, 'deadlock']);
    } finally {
      await Promise.all(nodes.map((node) => node.stop()));
    }
  });
});
