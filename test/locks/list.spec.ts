import { beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import {
  type Lease,
  type LockModuleOptions,
  type LockSummary,
  MemoryLockStore,
  type LockService,
} from '../../lib/index.js';
import { until } from '../scenarios/until.js';
import { queueOf } from '../support/keys.js';
import { first } from '../support/tier.js';
import { Worker } from '../support/worker.js';
import { servicesOfEach } from '../support/services.js';
import { serverOfAll } from '../support/test-servers.js';

const server = serverOfAll();
let redis: Redis;
const { open, services } = servicesOfEach(() => ({ label: 'api-1' }));

beforeEach(async () => {
  redis = server.client();
  await redis.flushall();
});

const service = (options: Partial<LockModuleOptions> = { connection: server.url }) => open(options);

/** All pages. */
async function all(
  locks: LockService,
  options: Parameters<LockService['list']>[0] = {},
): Promise<LockSummary[]> {
  const found: LockSummary[] = [];
  for (let cursor: string | null | undefined; cursor !== null;) {
    const page = await locks.list({ ...options, cursor });
    expect(page.locks.length).toBeLessThanOrEqual(options.limit ?? 100);
    found.push(...page.locks);
    cursor = page.cursor;
  }
  return found;
}
const namesOf = (locks: readonly LockSummary[]) => locks.map(({ name }) => name).sort();

const stores: [string, () => Partial<LockModuleOptions>][] = [
  ['Redis', () => ({ connection: server.url })],
  ['memory', () => ({ store: new MemoryLockStore() })],
];

describe.each(stores)('list on %s', (_, options) => {
  it('tells of each lock its kind, holders and waiters', async () => {
    const given = options();
    const [locks, other] = [service(given), service({ ...given, label: 'api-2' })];
    const plain = await locks.acquire('plain');
    await locks.getFairLock('fair').acquire({ leaseTime: 600_000 });
    const { read } = other.getReadWriteLock('rw');
    await Promise.all([read.acquire(), read.acquire()]);
    await other.getSemaphore('permits', 3).acquire();
    const waiting = [other.getFairLock('fair').acquire(), other.acquire('plain')];
    await until(async () => (await all(locks, { state: 'waited' })).length === 2);

    const found = new Map((await all(locks)).map((lock) => [lock.name, lock]));
    expect([...found.keys()].sort()).toEqual(['fair', 'permits', 'plain', 'rw']);
    const holder = (label: string) => ({
      label,
      since: expect.any(Number),
      remaining: expect.any(Number),
      fencingToken: expect.any(Number),
    });
    expect(found.get('plain')).toMatchObject({ kind: 'lock', waiting: 1, longestWait: expect.any(Number) });
    expect(found.get('plain')?.holders).toEqual([{ ...holder('api-1'), fencingToken: plain.fencingToken }]);
    expect(found.get('fair')).toMatchObject({ kind: 'fair', waiting: 1, holders: [holder('api-1')] });
    expect(found.get('rw')).toMatchObject({ kind: 'read-write', waiting: 0, longestWait: null });
    expect(found.get('rw')?.holders).toEqual([holder('api-2'), holder('api-2')]);
    expect(found.get('permits')).toMatchObject({ kind: 'semaphore', holders: [holder('api-2')] });
    const { since = NaN, remaining = NaN } = found.get('fair')?.holders[0] ?? {};
    expect(since).toBeGreaterThanOrEqual(0);
    expect(since).toBeLessThan(300_000);
    expect(remaining).toBeGreaterThan(300_000);
    expect(remaining).toBeLessThanOrEqual(600_000);

    expect(namesOf(await all(locks, { state: 'held', prefix: 'p' }))).toEqual(['permits', 'plain']);
    for (const lease of services.flatMap((each) => [...each.leases()])) await lease.release();
    await Promise.all(waiting.map(async (lease) => (await lease).release()));
    expect(await all(locks)).toEqual([]);
  });

  it('gives pages that have each lock once, whatever is asked for in between', async () => {
    const locks = service(options());
    const names = Array.from({ length: 250 }, (_, n) => `order:${String(n)}`);
    await Promise.all(names.map((name) => locks.acquire(name)));
    await locks.acquire('stock:1');
    for (const limit of [1_000, 100, 7]) {
      expect(namesOf(await all(locks, { prefix: 'order:', limit }))).toEqual([...names].sort());
    }
    expect((await locks.list({ prefix: 'order:1', limit: 3 })).locks).toHaveLength(3);
    expect(await locks.list({ prefix: 'none' })).toEqual({ locks: [], cursor: null });
  });

  it('refuses what is none of its options, and a signal that aborts ends it', async () => {
    const locks = service(options());
    const wrong = [
      [{ limit: 0 }, 'limit: must be a whole number from 1 to 1000'],
      [{ limit: 1_001 }, 'limit: must be'],
      [{ state: 'free' }, "state: must be 'held' or 'waited'"],
      [{ prefix: 5 }, 'prefix: must be a text'],
      [{ cursor: 'eyJh' }, 'cursor: must be the cursor of a page before'],
      [{ cursor: btoa('[1,"a",null]') }, 'cursor: must be the cursor of a page before'],
      [{ limits: 5 }, 'limits: is not an option of list, did you mean limit?'],
    ] as const;
    for (const [given, message] of wrong) {
      await expect(locks.list(given as never)).rejects.toThrow(message);
    }
    await expect(locks.list({ signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
  });
});

describe('list on Redis', () => {
  it('does not take other keys for locks', async () => {
    const locks = service();
    const lease = await locks.acquire('real');
    await redis.mset('lock:text', 'x', 'lock:', 'x', 'other', 'x', 'lock:text~ndl:other', 'x');
    await redis.hset('lock:user', 'name', 'x');
    await redis.zadd('lock:ranking', 1, 'x');
    await redis.rpush('lock:list', 'x');
    await redis.sadd('lock:set', 'x');
    expect(namesOf(await all(locks))).toEqual(['real']);
    await lease.release();
    // Its fence is left, and the label of a process may be.
    expect(await all(locks)).toEqual([]);
  });

  it('takes prefixes by the letter, of the module, of the client and of the call', async () => {
    const client = new Redis(server.url, { keyPrefix: 'app[1]:' });
    const locks = service({ connection: client, keyPrefix: 'l*ck:' });
    const plain = service({ connection: server.url, keyPrefix: 'lock:' });
    const names = ['a*b', 'a?b', 'axb', 'a[x]b', 'a\\b', '{tag}:1', 'a{b'];
    const leases: Lease[] = [];
    for (const name of names) leases.push(await locks.acquire(name));
    await plain.acquire('axb');
    expect(namesOf(await all(locks))).toEqual([...names].sort());
    expect(namesOf(await all(locks, { prefix: 'a*' }))).toEqual(['a*b']);
    expect(namesOf(await all(locks, { prefix: 'a[x' }))).toEqual(['a[x]b']);
    expect(namesOf(await all(locks, { prefix: 'a\\' }))).toEqual(['a\\b']);
    expect(namesOf(await all(plain))).toEqual(['axb']);
    for (const lease of leases) await lease.release();
    await locks.close();
    client.disconnect();
  });

  it('tells of a lock that only its waiters know, and of a holder of another library', async () => {
    const locks = service();
    await redis.hset('lock:foreign', '6b1b2f5c-6f0a-4a0a-9d7e-000000000000:1', 1);
    await redis.pexpire('lock:foreign', 60_000);
    const waiting = locks.getLock('foreign').acquire({ waitTime: 3_000 });
    await until(async () => (await all(locks, { state: 'waited' })).length > 0);
    const [foreign] = await all(locks);
    expect(foreign?.holders).toEqual([
      {
        label: '6b1b2f5c-6f0a-4a0a-9d7e-000000000000:1',
        since: NaN,
        remaining: expect.any(Number),
        fencingToken: 0,
      },
    ]);
    await redis.del('lock:foreign');
    await (await waiting).release();
  });

  it.each(first(1, ['fair', 'plain'] as const))(
    'leaves out the waiters of a %s lock that have been killed',
    async (kind) => {
      const locks = service();
      const name = `killed ${kind}`;
      const holder = await (kind === 'fair' ? locks.getFairLock(name) : locks.getLock(name)).acquire();
      const workers = await Promise.all(
        [1, 2].map((n) => Worker.start({ url: server.url, service: { label: String(n) } })),
      );
      const options = { waitTime: 60_000, ...(kind === 'fair' ? { kind } : {}) };
      const outcomes = workers.map((worker) => worker.call('acquire', name, options).catch(() => undefined));
      const waiting = async () => (await all(locks)).map((lock) => [lock.name, lock.waiting]);
      try {
        await until(async () => (await all(locks))[0]?.waiting === 2);
        await workers[0]?.kill();
        await until(async () => (await all(locks))[0]?.waiting === 1);
        // A label is known after a wait of one second.
        await until(async () => (await locks.inspect(name))?.queue[0]?.label !== undefined);
        const state = await locks.inspect(name);
        expect(state?.queue.map(({ position, label }) => [position, label])).toEqual([[1, '2']]);
        expect(state?.waiters.processes).toBe(kind === 'fair' ? 0 : 1);
        await workers[1]?.kill();
        await until(async () => (await all(locks))[0]?.waiting === 0);
        expect(await all(locks, { state: 'waited' })).toEqual([]);
        // The holder has died as well: no release hands the lock over, and the queue stays.
        await redis.del(`lock:${name}`);
        expect(await redis.zcard(queueOf(`lock:${name}`))).toBe(2);
        expect(await waiting()).toEqual([]);
        expect(await locks.inspect(name)).toBeNull();
      } finally {
        await Promise.all(workers.map((worker) => worker.kill()));
        await Promise.all(outcomes);
        await holder.release().catch(() => undefined);
      }
    },
  );
});

it('list tells the token that a hand-off within this process has given', async () => {
  const locks = service();
  const [first, second] = [locks.acquire('handed'), locks.acquire('handed')];
  await (await first).release();
  const lease = await second;
  const [listed] = (await locks.list()).locks;
  expect(listed?.holders[0]?.fencingToken).toBe(lease.fencingToken);
  await lease.release();
});
