import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import {
  acquire as acquireScript,
  acquireAll,
  recall,
  release as releaseScript,
  releaseAll,
  remember,
  renew,
  transfer,
} from '../../../support/scripts.js';
import { RedisServer } from '../../../support/redis-server.js';
import { BareLock, CLAIM, FAR, FENCE, LEASE, LOCK, QUEUE, STAY } from './bare-lock.js';

const CHANNEL = 'lock_queue__channel:releases';

let server: RedisServer;
let lock: BareLock;

beforeAll(async () => {
  server = await RedisServer.start();
  lock = new BareLock(server);
});

afterAll(async () => {
  lock.close();
  await server.stop();
});

beforeEach(() => lock.clear());

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
const words = (told: readonly string[], count: number) =>
  told.map((message) => message.split(' ').slice(0, count).join(' '));
const left = (key: string) => lock.redis.pttl(key);
/** A busy machine takes its time. */
const near = (ms: number) => ({ from: Math.max(0, ms - 3_000), to: ms });
const expectNear = (ms: number, { from, to }: { from: number; to: number }) => {
  expect(ms).toBeGreaterThan(from);
  expect(ms).toBeLessThanOrEqual(to);
};

describe('A plain lock that is free', () => {
  it('is taken in the layout of Redisson, and its fence outlives the lease', async () => {
    const token = await acquire('a:1');
    expect(Math.abs(Number(token) / 1_000 - (await lock.now()))).toBeLessThan(1_000);
    expect(await lock.redis.hgetall(LOCK)).toEqual({ 'a:1': '1' });
    expect(await lock.redis.get(FENCE)).toBe(`${String(token)} a:1`);
    expectNear(await left(LOCK), near(LEASE));
    expectNear(await left(FENCE), near(LEASE + STAY));
  });

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

  it('is taken by an owner outside of its queue: the holder has died', async () => {
    await lock.waiters({ 'p b:1 30000': 50 });
    await lock.listen('b');
    expect(typeof (await acquire('a:1', { lease: 2 * LEASE }))).toBe('number');
    expect(await lock.queue()).toEqual(['p b:1 30000']);
    // The first of the queue looks by itself before that ends.
    expect(await lock.told()).toEqual([]);
  });

  it('tells the first of its queue of an end that comes sooner than it looks', async () => {
    await lock.waiters({ 'p b:1 30000': 50 });
    await lock.listen('b');
    await acquire('a:1', { lease: 10_000 });
    expect(words(await lock.told(), 3)).toEqual(['b: next b:1']);
  });

  it('takes the entry of its new owner out of the queue', async () => {
    await lock.waiters({ [`p a:1 ${String(LEASE)}`]: 50, 'p b:1 30000': 30 });
    await lock.listen('a', 'b');
    expect(typeof (await stand('a:1'))).toBe('number');
    expect(await lock.queue()).toEqual(['p b:1 30000']);
    await lock.clear();
    await lock.waiters({ [`p a:1 ${String(LEASE)}`]: 50 });
    expect(typeof (await stand('a:1', { arrival: 7 }))).toBe('number');
    expect(await lock.queue()).toEqual([]);
  });
});

describe('The owner of a plain lock', () => {
  it('that asks without its entry, since it hears no messages, has none after it has got the lock', async () => {
    await lock.waiters({ [`p a:1 ${String(LEASE)}`]: 50, 'p b:1 30000': 30 });
    expect(typeof (await acquire('a:1'))).toBe('number');
    expect(await lock.queue()).toEqual(['p b:1 30000']);
  });

  it('has it again with a new token, and for no shorter', async () => {
    await lock.plain('a:1', 5_000);
    expect(await acquire('a:1')).toBeGreaterThan(5);
    expectNear(await left(LOCK), near(LEASE));
    await acquire('a:1', { lease: 1_000 });
    expectNear(await left(LOCK), near(LEASE));
    expectNear(await left(FENCE), near(LEASE + STAY));
  });
});

describe('A plain lock that is busy', () => {
  it('says until when, and by which owner, and takes no entry of an owner that only asks', async () => {
    await lock.plain('b:1', 5_000);
    const [look, holder, ...rest] = (await acquire('a:1')) as unknown[];
    expect([holder, rest]).toEqual(['b:1', []]);
    expectNear(Number(look), near(5_000));
    expect(await lock.redis.exists(QUEUE)).toBe(0);
  });

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

  it('takes no entry of a user that may not give the queue an end', async () => {
    await lock.plain('a:1', 5_000);
    const rights = ['on', 'nopass', '~*', '&*', '+@all', '-pexpire'];
    await lock.redis.call('ACL', 'SETUSER', 'limited', ...rights);
    const redis = lock.redis.duplicate({ username: 'limited', password: 'any' });
    const asking = redis.eval(
      acquireScript.source,
      3,
      LOCK,
      FENCE,
      QUEUE,
      'b:1',
      LEASE,
      0,
      LEASE + STAY,
      0,
      '',
    );
    await expect(asking.finally(() => redis.quit())).rejects.toThrow(/can't run this command|no permissions/);
    expect(await lock.queue()).toEqual([]);
  });

  it('lets the first listen for releases where the fence does not know its owner, and the others look soon', async () => {
    await lock.plain('redisson:1', 5_000, '5 z:1');
    const [look, , , , , listens] = (await stand('a:1')) as unknown[];
    expect(listens).toBe(1);
    expectNear(Number(look), near(5_000));
    const [second, , , , , others] = (await stand('c:1')) as unknown[];
    expect([second, others]).toEqual([CLAIM + 10, 0]);
  });

  it('knows an owner that has released it and keeps it', async () => {
    await lock.plain('kept:b:1', 5_000, '5 b:1');
    expect(((await stand('a:1')) as unknown[])[5]).toBe(0);
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
  it('frees it, and tells those that listen for it', async () => {
    await lock.plain('a:1', 5_000);
    await lock.listen('releases');
    expect(await release('a:1')).toBe(1);
    expect([await lock.told(), await lock.redis.exists(LOCK)]).toEqual([['releases: 0'], 0]);
    expect(await lock.redis.get(FENCE)).toBe('5 a:1');
  });

  it('by another owner changes nothing, and tells none', async () => {
    await lock.plain('b:1', 5_000);
    await lock.listen('releases');
    expect(await release('a:1')).toBe(-1);
    expect([await lock.told(), await lock.redis.hgetall(LOCK)]).toEqual([[], { 'b:1': '1' }]);
    await lock.clear();
    await lock.listen('releases');
    expect(await release('a:1')).toBe(0);
    expect(await lock.told()).toEqual([]);
  });

  it('leaves the greatest token that was given out', async () => {
    await lock.plain('a:1', 5_000, '5 a:1');
    await release('a:1', { token: 9 });
    expect(await lock.redis.get(FENCE)).toBe('9');
    expectNear(await left(FENCE), near(STAY));
    await lock.plain('a:1', 5_000, '12 a:1');
    await release('a:1', { token: 9 });
    expect(await lock.redis.get(FENCE)).toBe('12 a:1');
  });

  it('hands it over to the first that lives, which is told', async () => {
    await lock.plain('a:1', 5_000);
    await lock.waiters({ 'p gone:1 30000': 90, 'p b:1 60000': 50, 'p c:1 30000': 30 });
    await lock.listen('b', 'c');
    expect(await release('a:1', { token: FAR })).toBe(1);
    // The next one looks before this hold ends, and is not told.
    expect(words(await lock.told(), 4)).toEqual([`b: granted b:1 ${String(FAR + 1_000)}`]);
    expect(await lock.redis.hgetall(LOCK)).toEqual({ 'b:1': '1' });
    expectNear(await left(LOCK), near(60_000));
    expectNear(await left(FENCE), near(60_000 + STAY));
    expect(await lock.queue()).toEqual(['p c:1 30000']);
  });

  it('hands it over for a claim after a second, and tells the next one when to look', async () => {
    await lock.plain('a:1', 5_000);
    await lock.waiters({ 'p b:1 30000': 1_500, 'p c:1 30000': 1_300 });
    await lock.listen('b', 'c');
    await release('a:1');
    expect(words(await lock.told(), 4)).toMatchObject([
      expect.stringMatching(/^b: granted b:1/),
      expect.stringMatching(/^c: next c:1 (1000|99\d)$/),
    ]);
    expectNear(await left(LOCK), near(CLAIM));
  });

  it('leaves it taken for as long as was asked for, under another owner, and says so to all', async () => {
    await lock.plain('a:1', 5_000);
    await lock.waiters({ 'p b:1 30000': 50 });
    await lock.listen('b', 'releases');
    expect(await release('a:1', { keepFor: 60_000 })).toBe(1);
    expect(await lock.redis.hgetall(LOCK)).toEqual({ 'kept:a:1': '1' });
    expectNear(await left(LOCK), near(60_000));
    expectNear(await left(FENCE), near(60_000 + STAY));
    const [next = '', ...others] = await lock.told();
    expect(others).toEqual(['releases: 0']);
    expect(next).toMatch(/^b: next b:1 \d+$/);
    expectNear(Number(next.split(' ')[3]), near(60_000));
    expect(await release('a:1', { keepFor: 60_000 })).toBe(-1);
  });

  it('gives up an entry, and the queue goes on where the lock has no holder', async () => {
    await lock.waiters({ [`p a:1 ${String(LEASE)}`]: 90, 'p b:1 30000': 50 });
    await lock.fence('5 z:1');
    await lock.listen('b');
    expect(await release('a:1')).toBe(0);
    expect(words(await lock.told(), 3)).toEqual(['b: granted b:1']);
    await lock.clear();
    await lock.plain('c:1', 5_000);
    await lock.waiters({ [`p a:1 ${String(LEASE)}`]: 90, 'p b:1 30000': 50 });
    await lock.listen('b');
    expect(await release('a:1')).toBe(-1);
    expect([await lock.queue(), words(await lock.told(), 3)]).toEqual([['p b:1 30000'], ['b: next b:1']]);
  });

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
  it('gives it the lock where none waits', async () => {
    await lock.plain('a:1', 5_000, '5 a:1');
    const [released, token, rivals] = (await release('a:1', { next: 'a:2', nextLease: 9_000 })) as unknown[];
    expect([released, rivals]).toEqual([1, 0]);
    expect(await lock.redis.hgetall(LOCK)).toEqual({ 'a:2': '1' });
    expect(await lock.redis.get(FENCE)).toBe(`${String(token)} a:2`);
    expectNear(await left(LOCK), near(9_000));
    expect(await lock.queue()).toEqual([]);
  });

  it('puts it behind those that wait', async () => {
    await lock.plain('a:1', 5_000, '5 a:1');
    await lock.waiters({ 'p b:1 30000': 50 });
    await lock.listen('a', 'b');
    const reply = (await release('a:1', { next: 'a:2', nextLease: 9_000 })) as unknown[];
    const [released, look, holder, arrival, now, name, listens] = reply;
    expect([released, holder, name, listens]).toEqual([1, 'b:1', '', 0]);
    expectNear(Number(look), near(30_000));
    expect(Math.floor(Number(arrival) / 1_000)).toBe(Number(now));
    expect(words(await lock.told(), 3)).toEqual(['b: granted b:1']);
    expect(await lock.queue()).toEqual(['p a:2 9000']);
  });

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
  it('get the lock now and then, with a release that all hear, and the first of the queue looks a moment later', async () => {
    await lock.listen('releases', 'b');
    let leftToThem = 0;
    for (let n = 0; n < 60; n++) {
      await lock.redis.del(LOCK, FENCE, QUEUE);
      await lock.plain('a:1', 5_000);
      await lock.waiters({ 'p b:1 30000': 50 });
      await release('a:1');
      const told = await lock.told();
      if ((await lock.redis.exists(LOCK)) === 1) {
        expect(told).toEqual([expect.stringMatching(/^b: granted b:1 .* 2$/)]);
        continue;
      }
      leftToThem++;
      expect(told).toContain('releases: 0');
      expect(told).toContain('b: next b:1 10 1');
      expect(await lock.queue()).toEqual(['p b:1 30000']);
    }
    // One in four.
    expect(leftToThem).toBeGreaterThan(1);
    expect(leftToThem).toBeLessThan(45);
  });

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

  it('are told of a claim, which ends sooner than the hold that they know of', async () => {
    await lock.listen('releases', 'b');
    await lock.plain('a:1', 5_000);
    await lock.waiters({ 'p b:1 30000': 1_500 });
    await release('a:1');
    expect(await lock.told()).toContain('releases: 0');
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

  it('leave the next caller of the process its entry', async () => {
    await lock.listen('releases');
    const replies = new Set<string>();
    for (let n = 0; n < 60; n++) {
      await lock.redis.del(LOCK, FENCE, QUEUE);
      await lock.plain('a:1', 5_000);
      const reply = (await release('a:1', { next: 'a:2', nextLease: 9_000 })) as unknown[];
      if (reply.length === 3) {
        expect(reply[2]).toBe(2);
        replies.add('taken');
        continue;
      }
      expect([reply[1], reply[2], reply[6]]).toEqual([10, null, 1]);
      expect(await lock.queue()).toEqual(['p a:2 9000']);
      replies.add('left');
    }
    expect([...replies].sort()).toEqual(['left', 'taken']);
  });
});

describe('A plain hold that passes to another owner', () => {
  const pass = async (owner: string, next: string, lease = LEASE, least = 0) =>
    (await lock.run(transfer, owner, next, lease, least, STAY, 'PUBLISH', CHANNEL, '')) as number[];

  it('is one hold with another owner and a greater token', async () => {
    await lock.plain('a:1', 5_000);
    const [code, token] = await pass('a:1', 'b:1');
    expect([code, await lock.redis.hgetall(LOCK)]).toEqual([1, { 'b:1': '1' }]);
    expect(await lock.redis.get(FENCE)).toBe(`${String(token)} b:1`);
    expectNear(await left(LOCK), near(LEASE));
    expectNear(await left(FENCE), near(LEASE + STAY));
  });

  it('that is asked for again says the same, and is no shorter', async () => {
    await lock.plain('a:1', 5_000);
    const [, token = 0] = await pass('a:1', 'b:1', LEASE, FAR);
    expect(token).toBe(FAR);
    expect((await pass('a:1', 'b:1', 1_000, FAR)).slice(0, 2)).toEqual([1, FAR]);
    expectNear(await left(LOCK), near(LEASE));
    expectNear(await left(FENCE), near(LEASE + STAY));
    expect((await pass('a:1', 'b:1', 1_000, FAR + 1))[1]).toBe(FAR + 1);
  });

  it('does not pass from an owner without it', async () => {
    expect((await pass('a:1', 'b:1')).slice(0, 2)).toEqual([0, 0]);
    await lock.plain('c:1', 5_000);
    expect((await pass('a:1', 'b:1')).slice(0, 2)).toEqual([-1, 0]);
    expect(await lock.redis.hgetall(LOCK)).toEqual({ 'c:1': '1' });
  });

  it('tells the waiters only where it ends sooner than they know', async () => {
    await lock.plain('a:1', 5_000);
    await lock.waiters({ 'p c:1 30000': 50 });
    await lock.listen('c', 'releases');
    await pass('a:1', 'b:1', 9_000);
    expect(await lock.told()).toEqual([]);
    await pass('b:1', 'd:1', 4_000);
    expect(words(await lock.told(), 3)).toEqual(['c: next c:1', 'releases: 0']);
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
  const give = async (owner: string) =>
    (await lock.redis.eval(
      releaseAll.source,
      9,
      ...names,
      ...names.map((name) => `${name}-fence`),
      ...names.map((name) => `${name}-queue`),
      ...[owner, 'PUBLISH', STAY, LEASE, ''],
    )) as (number | Error)[];

  it('are all taken, each with a token of its own', async () => {
    await lock.redis.set('b-fence', `${String(FAR)} z:1`);
    const [first, second, third] = await take('o:1');
    expect([second, third]).toEqual([FAR + 1_000, first]);
    for (const [n, name] of names.entries()) {
      expect(await lock.redis.hgetall(name)).toEqual({ 'o:1': '1' });
      expect(await lock.redis.get(`${name}-fence`)).toBe(`${String([first, second, third][n])} o:1`);
      expectNear(await left(name), near(LEASE));
      expectNear(await left(`${name}-fence`), near(LEASE + STAY));
    }
  });

  it('answer with one number where it says it of all', async () => {
    const token = await take('o:1');
    expect(token).toEqual(expect.any(Number));
    for (const name of names) expect(await lock.redis.get(`${name}-fence`)).toBe(`${String(token)} o:1`);
    expect(await give('o:1')).toBe(1);
  });

  it('that were taken together go on from their last token', async () => {
    for (const name of ['b', 'c']) await lock.redis.set(`${name}-fence`, `${String(FAR)} z:1`);
    const [first, second, third] = await take('o:1');
    expect(first).toBeLessThan(FAR);
    expect([second, third]).toEqual([FAR + 1_000, FAR + 1_000]);
  });

  it('are none where one is busy, which is named', async () => {
    await lock.redis.hset('b', 'z:1', 1);
    await lock.redis.pexpire('b', 5_000);
    const [which, ms, holder] = await take('o:1');
    expect([which, holder]).toEqual([-2, 'z:1']);
    expectNear(Number(ms), near(5_000));
    expect(await lock.redis.exists('a', 'c', 'a-fence')).toBe(0);
  });

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

  it('are held for no shorter where the owner has some of them', async () => {
    await lock.redis.hset('b', 'o:1', 1);
    await lock.redis.pexpire('b', 60_000);
    await take('o:1');
    expectNear(await left('b'), near(60_000));
    expectNear(await left('b-fence'), near(60_000 + STAY));
    expectNear(await left('a'), near(LEASE));
    await take('o:1', 40_000);
    expectNear(await left('b'), near(60_000));
    expectNear(await left('a'), near(40_000));
  });

  it('are all given up, each with its own answer and message', async () => {
    await take('o:1');
    await lock.redis.hset('c', 'z:1', 1);
    await lock.redis.hdel('c', 'o:1');
    await lock.redis.pexpire('c', 5_000);
    await lock.redis.set('b', 'text');
    const heard: string[] = [];
    const listener = lock.redis.duplicate();
    listener.on('message', (channel: string) => heard.push(channel));
    await listener.subscribe(...names.map((name) => `redisson_lock__channel:{${name}}`));
    const [first, second, third] = await give('o:1');
    await listener.ping();
    listener.disconnect();
    expect([first, third]).toEqual([1, -1]);
    expect(String(second)).toMatch(/WRONGTYPE/);
    expect(heard).toEqual(['redisson_lock__channel:{a}']);
  });

  it('go to the waiters of each', async () => {
    await take('o:1');
    await lock.redis.zadd('b-queue', 5, 'p w:1 30000');
    await lock.listen('w');
    expect(await give('o:1')).toEqual([1, 1, 1]);
    expect(await lock.redis.hgetall('b')).toEqual({ 'w:1': '1' });
    expect(words(await lock.told(), 3)).toEqual(['w: granted w:1']);
    expect(await lock.redis.exists('a', 'c')).toBe(0);
  });
});

describe('A server whose memory is full', () => {
  beforeEach(() => lock.full(false));
  afterAll(() => lock.full(false));

  it('refuses a new owner, and leaves the entry of one at its turn where the lock is refused', async () => {
    await lock.full(true);
    await expect(acquire('a:1')).rejects.toThrow(/^OOM/);
    expect(await lock.redis.exists(LOCK, FENCE)).toBe(0);
    await lock.full(false);
    await lock.plain('b:1', 5_000);
    await lock.full(true);
    await expect(stand('a:1')).rejects.toThrow(/^OOM/);
    expect(await lock.redis.exists(QUEUE)).toBe(0);
  });

  it('lets in an owner at its turn, one that confirms its claim, and the next one after a release', async () => {
    await lock.waiters({ [`p a:1 ${String(LEASE)}`]: 50 });
    await lock.full(true);
    expect(typeof (await stand('a:1', { arrival: 7 }))).toBe('number');
    expect(typeof (await stand('a:1', { arrival: 7 }))).toBe('number');
    await lock.full(false);
    await lock.waiters({ 'p b:1 30000': 50 });
    await lock.listen('b');
    await lock.full(true);
    expect(await release('a:1', { token: FAR })).toBe(1);
    expect(await lock.redis.hgetall(LOCK)).toEqual({ 'b:1': '1' });
  });
});

describe('A renewal of plain locks', () => {
  const extend = async (...holds: (readonly [key: string, owner: string, lease: number])[]) =>
    (await lock.redis.eval(
      renew.source,
      2 * holds.length,
      ...holds.flatMap(([key]) => [key, `${key}-fence`]),
      STAY,
      ...holds.flatMap(([, owner, lease]) => [owner, lease]),
    )) as number[];

  it('counts for each by itself, and makes none shorter', async () => {
    for (const [key, owner] of [
      ['a', 'o:1'],
      ['b', 'z:1'],
      ['d', 'o:2'],
    ] as const) {
      await lock.redis.hset(key, owner, 1);
      await lock.redis.pexpire(key, 5_000);
      await lock.redis.set(`${key}-fence`, '5', 'PX', 5_000);
    }
    await lock.redis.set('e', 'text');
    const held = await extend(
      ['a', 'o:1', LEASE],
      ['b', 'o:1', LEASE],
      ['c', 'o:1', LEASE],
      ['d', 'o:2', 1_000],
      ['e', 'o:1', LEASE],
    );
    expect(held).toEqual([1, -1, 0, 1, -2]);
    expectNear(await left('a'), near(LEASE));
    expectNear(await left('a-fence'), near(LEASE + STAY));
    expectNear(await left('b'), near(5_000));
    expectNear(await left('d'), near(5_000));
    expectNear(await left('d-fence'), near(1_000 + STAY));
    expect(await lock.redis.exists('c')).toBe(0);
  });

  it('only asks with a lease of 0', async () => {
    await lock.redis.hset('a', 'o:1', 1);
    await lock.redis.pexpire('a', 5_000);
    await lock.redis.set('a-fence', '5', 'PX', 5_000);
    expect(await extend(['a', 'o:1', 0])).toEqual([1]);
    expectNear(await left('a'), near(5_000));
    expectNear(await left('a-fence'), near(5_000));
  });
});

describe('The note of a success', () => {
  const note = async (owner: string) =>
    (await lock.redis.eval(remember.source, 2, LOCK, 'done', owner, 5_000)) as number;
  const since = async () => await lock.redis.eval(recall.source, 1, 'done');

  it('is written by the holder alone, and tells how long ago that was', async () => {
    expect([await since(), await note('a:1')]).toEqual([null, 0]);
    await lock.plain('b:1', 5_000);
    expect([await note('a:1'), await since()]).toEqual([-1, null]);
    expect(await note('b:1')).toBe(1);
    expect(Number(await since())).toBeLessThan(1_000);
    expectNear(await left('done'), near(5_000));
    await lock.redis.set('done', (await lock.now()) - 4_000);
    expect(Number(await since())).toBeGreaterThanOrEqual(4_000);
    // The clock has been set back.
    await lock.redis.set('done', (await lock.now()) + 4_000);
    expect(await since()).toBe(0);
  });
});
