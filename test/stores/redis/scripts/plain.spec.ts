import { describe, expect, it } from '@jest/globals';
import {
  acquire as acquireScript,
  acquireAll,
  release as releaseScript,
  remember,
  renew,
  transfer,
} from '../../../support/scripts.js';
import { BareLock, CLAIM, FAR, FENCE, LEASE, LOCK, QUEUE, STAY } from './bare-lock.js';

const CHANNEL = 'lock_queue__channel:releases';

const lock = BareLock.set();

type Reply = number | [look: number, holder: string | null, ...rest: (number | string | null)[]];

interface Ask {
  lease?: number;
  least?: number;
  /** The arrival; undefined only asks. */
  arrival?: number;
}

const acquire = async (owner: string, { lease = LEASE, least = 0, arrival }: Ask = {}) =>
  (await lock.run(acquireScript, owner, lease, least, lease + STAY, arrival ?? '', '')) as Reply;
const stand = (owner: string, ask: Ask = {}) => acquire(owner, { arrival: 0, ...ask });

interface Leave {
  token?: number;
  keepFor?: number;
  asked?: number | '';
  next?: string;
  nextLease?: number;
}

const release = async (owner: string, leave: Leave = {}): Promise<unknown> => {
  const { token = 0, keepFor = 0, asked = LEASE, next = '', nextLease = LEASE } = leave;
  return await lock.run(
    releaseScript,
    ...[owner, 'PUBLISH', CHANNEL, token, STAY, keepFor, asked, next, nextLease, ''],
  );
};
const left = (key: string) => lock.redis.pttl(key);
/** A busy machine takes its time. */
const near = (ms: number) => ({ from: Math.max(0, ms - 3_000), to: ms });
const expectNear = (ms: number, { from, to }: { from: number; to: number }) => {
  expect(ms).toBeGreaterThan(from);
  expect(ms).toBeLessThanOrEqual(to);
};

describe('A plain lock that is free', () => {
  it('gives a greater token than the last one, and no less than was asked for', async () => {
    await lock.fence(`${String(FAR)} z:1`);
    expect(await acquire('a:1')).toBe(FAR + 1_000);
    expect(await lock.redis.get(FENCE)).toBe(`${String(FAR + 1_000)} a:1`);
    expectNear(await left(FENCE), near(LEASE + STAY));
    await lock.clear();
    await lock.fence('5 z:1');
    expect(await acquire('a:1', { least: FAR })).toBe(FAR);
    expect(await lock.redis.get(FENCE)).toBe(`${String(FAR)} a:1`);
  });

  it('is left to the script that looks at a kind with holders, where that was there last', async () => {
    await lock.fence('5 z:1 semaphore 2');
    expect(await acquire('a:1')).toEqual([-3]);
    expect([await lock.redis.get(FENCE), await lock.redis.exists(LOCK)]).toEqual(['5 z:1 semaphore 2', 0]);
    await lock.holders('5 z:1 semaphore 2', { 'sz:1': 5_000 });
    expect(await acquire('a:1')).toEqual([-3]);
    expect(await stand('a:1')).toEqual([-3]);
  });
});

describe('A plain lock that is busy', () => {
  it('takes an entry, whose life is the lease, the hold and that of the fence', async () => {
    await lock.plain('b:1', 5_000);
    const [look, holder, arrival, now, name, listens] = (await stand('a:1')) as unknown[];
    expect([holder, name, listens]).toEqual(['b:1', '', 0]);
    expectNear(Number(look), near(5_000));
    expect(Math.floor(Number(arrival) / 1_000)).toBe(Number(now));
    expect(await lock.queue()).toEqual([`p a:1 ${String(LEASE)}`]);
    expectNear(await left(QUEUE), near(LEASE + STAY + 5_000));
    const [second] = (await stand('c:1', { lease: 10 })) as unknown[];
    expectNear(Number(second), near(5_000 + CLAIM + 10));
    expect(await lock.queue()).toEqual([`p a:1 ${String(LEASE)}`, 'p c:1 10']);
    expectNear(await left(QUEUE), near(LEASE + STAY + 5_000));
  });

  it('lets the first listen for releases where the fence does not know its owner, and the others look soon', async () => {
    await lock.plain('redisson:1', 5_000, '5 z:1');
    const [look, , , , , listens] = (await stand('a:1')) as unknown[];
    expect(listens).toBe(1);
    expectNear(Number(look), near(5_000));
    const [second, , , , , others] = (await stand('c:1')) as unknown[];
    expect([second, others]).toEqual([CLAIM + 10, 0]);
  });

  it.each([
    ['a hash of the application', () => lock.redis.hset(LOCK, { a: 1, b: 2 })],
    ['a hash with one field', () => lock.redis.hset(LOCK, 'colour', 'red')],
    ['a hash with a field like an owner', () => lock.redis.hset(LOCK, 'a:b', 1)],
    ['a hash with a count that is none', () => lock.redis.hset(LOCK, 'b:1', 'x')],
    ['a lock without an end', () => lock.redis.hset(LOCK, 'b:1', 1)],
    ['a text', () => lock.redis.set(LOCK, 'a')],
  ])('is %s, which stays as it is', async (_, make) => {
    await make();
    if (_.includes('like') || _.includes('none')) await lock.redis.pexpire(LOCK, 60_000);
    const before = await lock.redis.dump(LOCK);
    for (const asked of [
      acquire('a:1'),
      stand('a:1'),
      lock.run(transfer, 'a:1', 'c:1', LEASE, 0, STAY, 'PUBLISH', CHANNEL, ''),
    ]) {
      await expect(asked).rejects.toThrow(/^WRONGTYPE/);
    }
    await expect(lock.redis.eval(remember.source, 2, LOCK, FENCE, 'a:1', 5)).rejects.toThrow(/^WRONGTYPE/);
    expect(await lock.redis.eval(renew.source, 2, LOCK, FENCE, STAY, 'a:1', LEASE)).toEqual([-2]);
    expect(await lock.redis.dump(LOCK)).toEqual(before);
  });
});

describe('A release of a plain lock', () => {
  it('gives up an entry of what has become something else', async () => {
    await lock.waiters({ [`p a:1 ${String(LEASE)}`]: 90, 'p b:1 30000': 50 });
    await lock.redis.set(LOCK, 'a');
    await expect(release('a:1')).rejects.toThrow(/^WRONGTYPE/);
    expect(await lock.queue()).toEqual(['p b:1 30000']);
    await expect(release('b:1', { asked: '' })).rejects.toThrow(/^WRONGTYPE/);
    expect(await lock.queue()).toEqual(['p b:1 30000']);
  });

  it('neither lets in nor passes a waiter of another kind', async () => {
    await lock.fence('5 z:1');
    await lock.waiters({ 'x b:1 30000': 50 });
    await lock.listen('b');
    expect(await release('a:1')).toBe(0);
    expect([await lock.queue(), await lock.told()]).toEqual([['x b:1 30000'], []]);
    await expect(release('a:1', { next: 'a:2' })).rejects.toThrow(/^WRONGTYPE/);
  });
});

describe('A release with the next caller of its process', () => {
  it('that is sent twice has the lock already, for no shorter', async () => {
    await lock.plain('a:2', 20_000, '7 a:2');
    expect(await release('a:1', { next: 'a:2', nextLease: 9_000 })).toEqual([-1, 7, 0]);
    expectNear(await left(LOCK), near(20_000));
    expectNear(await left(FENCE), near(20_000 + STAY));
    await lock.redis.del(FENCE);
    const [released, token] = (await release('a:1', { next: 'a:2', nextLease: 40_000 })) as unknown[];
    expect(released).toBe(-1);
    expect(await lock.redis.get(FENCE)).toBe(`${String(token)} a:2`);
    expectNear(await left(LOCK), near(40_000));
  });
});

describe('Waiters outside of the queue', () => {
  it('get the lock from a queue whose first processes are gone, too', async () => {
    await lock.listen('releases', 'b', 'c');
    for (;;) {
      await lock.redis.del(LOCK, FENCE, QUEUE);
      await lock.plain('a:1', 5_000);
      await lock.waiters({ 'p gone:1 30000': 90, 'p b:1 30000': 50, 'p c:1 30000': 40 });
      await release('a:1');
      const told = await lock.told();
      if ((await lock.redis.exists(LOCK)) === 1) continue;
      expect(told).toEqual(['releases: 0', 'b: next b:1 10 1', 'c: next c:1 1010']);
      expect(await lock.queue()).toEqual(['p b:1 30000', 'p c:1 30000']);
      return;
    }
  });

  it('get no turn while the lock stays taken', async () => {
    await lock.listen('releases', 'b');
    for (let n = 0; n < 12; n++) {
      await lock.redis.del(LOCK, FENCE, QUEUE);
      await lock.plain('a:1', 5_000);
      await lock.waiters({ 'p b:1 30000': 50 });
      await release('a:1', { keepFor: 9_000 });
      expect((await lock.told()).some((message) => /^b: next b:1 \d{4}$/.test(message))).toBe(true);
    }
  });
});

describe('Several plain locks at once', () => {
  const names = ['a', 'b', 'c'];
  const take = async (owner: string, lease = LEASE) =>
    (await lock.redis.eval(
      acquireAll.source,
      6,
      ...names,
      ...names.map((name) => `${name}-fence`),
      ...[owner, lease, 0, lease + STAY],
    )) as (number | string)[];

  it('are none where one is no plain lock, or was another kind last', async () => {
    await lock.redis.set('c', 'text');
    expect(await take('o:1')).toEqual([-3]);
    await lock.redis.del('c');
    await lock.redis.hset('c', { a: 1, b: 2 });
    expect(await take('o:1')).toEqual([-3]);
    await lock.redis.del('c');
    await lock.redis.zadd('b', 5, 'xo:1');
    expect(await take('o:1')).toEqual([-2, -3]);
    await lock.redis.del('b');
    await lock.redis.set('c-fence', '5 z:1 fair 1');
    expect(await take('o:1')).toEqual([-3, -3]);
    expect(await lock.redis.exists(...names)).toBe(0);
  });
});
