import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { inspect, queueAcquire, queueRelease, queueTransfer, renew } from '../../../support/scripts.js';
import { RedisServer } from '../../../support/redis-server.js';
import { BareLock, CLAIM, FAR, FENCE, LEASE, LOCK, QUEUE, STAY } from './bare-lock.js';

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

interface Ask {
  mode?: 'x' | 's';
  kind?: string;
  capacity?: number;
  lease?: number;
  /** Takes an entry. */
  stand?: boolean;
  arrival?: number;
  ownWriteHold?: string;
}

type Reply = [code: number, now: number, server: string, ...rest: (number | string | null)[]];

const acquire = async (owner: string, ask: Ask = {}): Promise<Reply> => {
  const { mode = 'x', kind = 'fair', capacity = 1, lease = LEASE } = ask;
  const { stand = true, arrival = 0, ownWriteHold = '' } = ask;
  const args = [owner, mode, kind, capacity, lease, stand ? 1 : 0, arrival, ownWriteHold, STAY, ''];
  return (await lock.run(queueAcquire, ...args)) as Reply;
};
const READ = { mode: 's', kind: 'read-write', capacity: 1_000 } as const;
const WRITE = { ...READ, mode: 'x' } as const;
const PERMIT = { mode: 's', kind: 'semaphore', capacity: 2 } as const;

interface Leave extends Ask {
  keepFor?: number;
  /** The lease that was asked for; 0 where it is not known. */
  asked?: number;
}

/** Asks for the name for the plain lock. */
const follow = () => acquire('-:0', { kind: '', stand: false });

const release = async (owner: string, leave: Leave = {}): Promise<number> => {
  const { mode = 'x', kind = 'fair', capacity = 1, keepFor = 0, asked = LEASE } = leave;
  return (await lock.run(queueRelease, owner, mode, kind, capacity, keepFor, asked, STAY, '')) as number;
};

describe('A lock with holders that is free', () => {
  it('is taken for the lease, and its fence outlives that', async () => {
    const [code, now, name, token] = await acquire('a:1');
    expect([code, name]).toEqual([1, '']);
    expect(Math.floor(Number(token) / 1_000)).toBe(now);
    expect(await lock.ends()).toEqual({ 'xa:1': now + LEASE });
    expect(await lock.endOf(LOCK)).toBe(now + LEASE);
    expect(await lock.endOf(FENCE)).toBe(now + LEASE + STAY);
    expect(await lock.redis.get(FENCE)).toBe(`${String(token)} a:1 fair 1`);
  });

  it('gives a greater token than the last one, by more where a process may have given out others', async () => {
    await lock.fence(`${String(FAR)} z:1 fair 1`);
    expect((await acquire('a:1'))[3]).toBe(FAR + 1);
    await lock.clear();
    await lock.fence(`${String(FAR)} z:1`);
    expect((await acquire('a:1'))[3]).toBe(FAR + 1_000);
  });

  it('is free when the hold of another owner is over, which leaves the others', async () => {
    const ends = await lock.holders('5 s:1 semaphore 2', { 'ss:1': -1, 'st:1': 5_000 });
    const [code, now] = await acquire('a:1', PERMIT);
    expect(code).toBe(1);
    expect(await lock.ends()).toEqual({ 'st:1': ends['st:1'], 'sa:1': now + LEASE });
    expect(await lock.endOf(LOCK)).toBe(now + LEASE);
  });

  it('may be of another kind than before', async () => {
    await lock.fence('5 z:1 semaphore 7');
    expect((await acquire('a:1'))[0]).toBe(1);
    expect(await lock.redis.get(FENCE)).toMatch(/^\d+ a:1 fair 1$/);
  });
});

describe('An owner that has the lock already', () => {
  it('keeps its token, and holds for a whole lease from now on', async () => {
    await lock.holders('5 a:1 fair 1', { 'xa:1': CLAIM });
    const [code, now, , token] = await acquire('a:1');
    expect([code, token]).toEqual([1, 5]);
    expect(await lock.ends()).toEqual({ 'xa:1': now + LEASE });
    expect([await lock.endOf(LOCK), await lock.endOf(FENCE)]).toEqual([now + LEASE, now + LEASE + STAY]);
  });

  it('holds no shorter than before', async () => {
    const ends = await lock.holders('5 a:1 fair 1', { 'xa:1': 2 * LEASE });
    expect((await acquire('a:1'))[3]).toBe(5);
    expect(await lock.ends()).toEqual(ends);
  });

  it('gets a new token where the last one is of another owner', async () => {
    await lock.holders('5 b:1 semaphore 2', { 'sa:1': 4_000, 'sb:1': 5_000 });
    expect((await acquire('a:1', PERMIT))[3]).toBeGreaterThan(5);
    expect(await lock.redis.get(FENCE)).toMatch(/^\d+ a:1 semaphore 2$/);
  });

  it('leaves the queue', async () => {
    await lock.holders('5 a:1 fair 1', { 'xa:1': CLAIM });
    await lock.waiters({ [`x a:1 ${String(LEASE)}`]: 2_000, 'x b:1 7': 1_000 });
    await acquire('a:1');
    expect(await lock.queue()).toEqual(['x b:1 7']);
  });

  it('gets it back where the fence has been evicted', async () => {
    await lock.holders('', { 'xa:1': CLAIM });
    await lock.redis.del(FENCE);
    const [code, , , token] = await acquire('a:1');
    expect([code, await lock.redis.get(FENCE)]).toEqual([1, `${String(token)} a:1 fair 1`]);
  });
});

describe('A lock with holders that is busy', () => {
  it('says until when, and by which owner, and takes no entry of an owner that only asks', async () => {
    const ends = await lock.holders('5 b:1 fair 1', { 'xb:1': 5_000 });
    const [code, now, name, look, arrival, holder] = await acquire('a:1', { stand: false });
    expect([code, name, look, arrival, holder]).toEqual([0, '', (ends['xb:1'] ?? 0) - now, 0, 'b:1']);
    expect(await lock.redis.exists(QUEUE)).toBe(0);
  });

  it('takes an entry at the end of the queue, which outlives the hold', async () => {
    const ends = await lock.holders('5 b:1 fair 1', { 'xb:1': 5_000 });
    const [, now, , look, arrival] = await acquire('a:1');
    const left = (ends['xb:1'] ?? 0) - now;
    expect(look).toBe(left);
    expect(Math.floor(Number(arrival) / 1_000)).toBe(now);
    expect(await lock.queue()).toEqual([`x a:1 ${String(LEASE)}`]);
    expect(Math.abs((await lock.endOf(QUEUE)) - (now + LEASE + STAY + left))).toBeLessThan(1_000);
    const [, then, , second, behind] = await acquire('c:1', { lease: 10 });
    expect(Number(behind)).toBeGreaterThan(Number(arrival));
    // After a lease the first one looks first.
    expect(second).toBe((ends['xb:1'] ?? 0) - then + CLAIM + 10);
    // Its life is never shortened.
    expect(await lock.endOf(QUEUE)).toBeGreaterThan(now + LEASE + STAY + left - 1_000);
  });

  it('gives an entry its old place again, and that behind one from the future none before it', async () => {
    await lock.holders('5 b:1 fair 1', { 'xb:1': 5_000 });
    const [future = 0] = Object.values(await lock.waiters({ 'x c:1 7': -60_000 }));
    expect((await acquire('a:1', { arrival: 4_711 }))[4]).toBe(4_711);
    expect(await lock.queue()).toEqual([`x a:1 ${String(LEASE)}`, 'x c:1 7']);
    // An entry that stands counts, whatever the owner was told.
    expect((await acquire('a:1', { arrival: 99 }))[4]).toBe(4_711);
    expect((await acquire('d:1'))[4]).toBe(future + 1);
  });

  it.each([
    [800, 800 + 10],
    [CLAIM, CLAIM + 10],
  ])('lets the second look %i ms before the end of a claim at %i', async (left, look) => {
    const ends = await lock.holders('5 b:1 fair 1', { 'xb:1': left });
    await lock.listen('c');
    await lock.waiters({ 'x c:1 30000': 10 });
    const [, now, , second] = await acquire('a:1');
    expect(Number(second) - look).toBe((ends['xb:1'] ?? 0) - now - left);
  });

  it('spreads the others over a quarter of a second behind a claim', async () => {
    const ends = await lock.holders('5 b:1 fair 1', { 'xb:1': 900 });
    await lock.listen('c');
    await lock.waiters(Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`x c:${String(n)} 7`, 100])));
    const [, now, , last] = await acquire('a:1');
    expect(last).toBe((ends['xb:1'] ?? 0) - now + 250);
  });

  it('is in use as another kind', async () => {
    await lock.holders('5 b:1 semaphore 2', { 'sb:1': 5_000 });
    expect(await acquire('a:1')).toEqual([-1, 'semaphore', 2]);
    expect(await acquire('a:1', { ...PERMIT, capacity: 3 })).toEqual([-1, 'semaphore', 2]);
    expect((await acquire('a:1', PERMIT))[0]).toBe(1);
  });

  it('is in use as another kind by a waiter that lives, and not by one that is gone', async () => {
    await lock.fence('5 b:1 semaphore 2');
    await lock.waiters({ 's b:2 7': 2_000 });
    await lock.listen('b');
    expect(await acquire('a:1')).toEqual([-1, 'semaphore', 2]);
    expect((await lock.told()).map((told) => told.split(' ').slice(0, 3))).toEqual([
      ['b:', 'granted', 'b:2'],
    ]);
    await lock.clear();
    await lock.fence('5 b:1 semaphore 2');
    await lock.waiters({ 's b:2 7': 2_000 });
    expect((await acquire('a:1'))[0]).toBe(1);
  });

  it('is in use as a plain lock', async () => {
    await lock.plain('b:1', 5_000);
    expect(await acquire('a:1')).toEqual([-1, 'lock', 1]);
  });

  it.each([
    ['a hash of the application', () => lock.redis.hset(LOCK, { a: 1, b: 2 })],
    ['a plain lock without an end', () => lock.redis.hset(LOCK, 'b:1', 1)],
    ['a sorted set of the application', () => lock.redis.zadd(LOCK, 5, 'apple', 6, 'pear')],
    ['holders without an end', () => lock.redis.zadd(LOCK, FAR, 'xb:1')],
    ['a text', () => lock.redis.set(LOCK, 'a')],
  ])('is %s, which stays as it is', async (_, make) => {
    await make();
    const before = await lock.redis.dump(LOCK);
    for (const asked of [
      acquire('a:1'),
      release('a:1'),
      lock.run(queueTransfer, 'a:1', 'c:1', 'x', 'fair', 1, LEASE, 0, STAY, ''),
      follow(),
    ]) {
      await expect(asked).rejects.toThrow(/^WRONGTYPE/);
    }
    expect(await lock.redis.dump(LOCK)).toEqual(before);
  });

  it('holds no lock where no fence says so', async () => {
    await lock.holders('5 b:1', { 'xb:1': 5_000 });
    await expect(acquire('a:1')).rejects.toThrow(/^WRONGTYPE/);
    await expect(lock.run(inspect, 'NUMSUB', 'c', '')).rejects.toThrow(/^WRONGTYPE/);
    await lock.redis.del(FENCE);
    await expect(acquire('a:1')).rejects.toThrow(/^WRONGTYPE/);
  });
});

describe('A server whose memory is full', () => {
  beforeEach(() => lock.full(false));
  afterAll(() => lock.full(false));

  it('refuses a new owner, which leaves nothing behind', async () => {
    await lock.full(true);
    await expect(acquire('a:1')).rejects.toThrow(/^OOM/);
    expect(await lock.redis.exists(LOCK, FENCE, QUEUE)).toBe(0);
  });

  it('lets in an owner at its turn, and one that confirms its claim', async () => {
    await lock.waiters({ [`x a:1 ${String(LEASE)}`]: 50 });
    await lock.full(true);
    expect((await acquire('a:1'))[0]).toBe(1);
    expect(await lock.queue()).toEqual([]);
    await lock.full(false);
    await lock.clear();
    await lock.holders('5 a:1 fair 1', { 'xa:1': CLAIM });
    await lock.waiters({ [`x a:1 ${String(LEASE)}`]: 50 });
    await lock.full(true);
    expect((await acquire('a:1'))[0]).toBe(1);
  });
});

describe('A user without some rights', () => {
  const as = async (rights: string, ask: (redis: BareLock['redis']) => Promise<unknown>) => {
    await lock.redis.call(
      'ACL',
      'SETUSER',
      'limited',
      'on',
      'nopass',
      '~*',
      '&*',
      '+@all',
      ...rights.split(' '),
    );
    const redis = lock.redis.duplicate({ username: 'limited', password: 'any' });
    try {
      return await ask(redis);
    } finally {
      redis.disconnect();
    }
  };
  const releaseWith = (redis: BareLock['redis']) =>
    redis.eval(queueRelease.source, 3, LOCK, FENCE, QUEUE, ...['a:1', 'x', 'fair', 1, 0, LEASE, STAY, '']);

  it('passes over a process that is gone by the count of receivers where it may not send PUBSUB', async () => {
    await lock.holders('5 a:1 fair 1', { 'xa:1': 5_000 });
    await lock.waiters({ 'x gone:1 30000': 90, 'x b:1 30000': 50 });
    await lock.listen('b');
    expect(await as('-pubsub', releaseWith)).toBe(1);
    expect(Object.keys(await lock.ends())).toEqual(['xb:1']);
  });

  it('passes over all waiters where it may send no message: they look by themselves', async () => {
    await lock.holders('5 a:1 fair 1', { 'xa:1': 5_000 });
    await lock.waiters({ 'x b:1 30000': 50 });
    await lock.listen('b');
    expect(await as('-publish', releaseWith)).toBe(1);
    expect(await lock.redis.exists(LOCK, QUEUE)).toBe(0);
  });

  it('gives a plain waiter that is gone no claim', async () => {
    await lock.fence('5 z:1');
    await lock.waiters({ 'p gone:1 30000': 90 });
    const args = ['a:1', 'x', 'fair', 1, LEASE, 1, 0, '', STAY, ''];
    const reply = await as('-pubsub', (redis) =>
      redis.eval(queueAcquire.source, 3, LOCK, FENCE, QUEUE, ...args),
    );
    expect((reply as Reply)[0]).toBe(1);
    expect(await lock.redis.type(LOCK)).toBe('zset');
  });
});

describe('Permits', () => {
  it('are given out up to the capacity, and the first that ends is waited for', async () => {
    const ends = await lock.holders('5 c:1 semaphore 2', { 'sb:1': 9_000, 'sc:1': 5_000 });
    const [code, now, , look, , holder] = await acquire('a:1', PERMIT);
    expect([code, look, holder]).toEqual([0, (ends['sc:1'] ?? 0) - now, 'c:1']);
    expect(await release('b:1', PERMIT)).toBe(1);
    expect((await acquire('d:1', PERMIT))[0]).toBe(1);
    expect((await acquire('e:1', PERMIT))[0]).toBe(0);
  });

  it('last as long as the last one of them, also when it is given back', async () => {
    const ends = await lock.holders('5 c:1 semaphore 3', { 'sb:1': 9_000, 'sc:1': 5_000 });
    expect(await release('b:1', { ...PERMIT, capacity: 3 })).toBe(1);
    expect(await lock.endOf(LOCK)).toBe(ends['sc:1']);
    const [, now] = await acquire('a:1', { ...PERMIT, capacity: 3, lease: 2_000 });
    expect(await lock.ends()).toEqual({ 'sc:1': ends['sc:1'], 'sa:1': now + 2_000 });
    expect(await lock.endOf(LOCK)).toBe(ends['sc:1']);
    // The fence outlives the last holder, which is not the one that has just entered.
    expect(await lock.endOf(FENCE)).toBe((ends['sc:1'] ?? 0) + STAY);
  });
});

describe('Readers and writers', () => {
  it('read together, and a writer waits for the last of them', async () => {
    await lock.holders('5 b:1 read-write 1000', { 'sb:1': 5_000 });
    expect((await acquire('a:1', READ))[0]).toBe(1);
    const ends = await lock.ends();
    const [code, now, , look, , holder] = await acquire('c:1', WRITE);
    expect([code, look, holder]).toEqual([0, (ends['sa:1'] ?? 0) - now, 'a:1']);
  });

  it('read beside their own write hold only, and pass the waiters', async () => {
    await lock.holders('5 b:1 read-write 1000', { 'xb:1': 5_000 });
    await lock.waiters({ 'x c:1 7': 2_000 });
    await lock.listen('c');
    expect((await acquire('a:1', { ...READ, stand: false }))[0]).toBe(0);
    expect((await acquire('a:1', { ...READ, ownWriteHold: 'z:1', stand: false }))[0]).toBe(0);
    expect((await acquire('b:2', { ...READ, ownWriteHold: 'b:1' }))[0]).toBe(1);
    expect(await lock.queue()).toEqual(['x c:1 7']);
  });

  it('do not pass the waiters where their own write hold is over', async () => {
    await lock.holders('5 b:1 read-write 1000', { 'sb:3': 5_000 });
    await lock.waiters({ 'x c:1 7': 2_000 });
    await lock.listen('c');
    expect((await acquire('b:2', { ...READ, ownWriteHold: 'b:1' }))[0]).toBe(0);
  });
});

describe('A turn', () => {
  const granted = (told: readonly string[]) =>
    told.map((message) => message.split(' ')).filter(([, type]) => type === 'granted');

  it('comes with a release, as a message with the token, for a claim after a second', async () => {
    await lock.holders('5 a:1 fair 1', { 'xa:1': 5_000 });
    await lock.waiters({ 'x b:1 30000': 1_500, 'x c:1 30000': 1_200 });
    await lock.listen('b', 'c');
    expect(await release('a:1')).toBe(1);
    const ends = await lock.ends();
    const [to = [], next = []] = (await lock.told()).map((message) => message.split(' '));
    const [, , owner, token, now, span, , rivals] = to;
    expect([to[0], owner, span, rivals]).toEqual(['b:', 'b:1', String(CLAIM), '1']);
    expect(ends).toEqual({ 'xb:1': Number(now) + CLAIM });
    expect(await lock.redis.get(FENCE)).toBe(`${String(token)} b:1 fair 1`);
    // A claim is in the way, so the next one is told when to look.
    expect([next[0], next[1], next[2], next[3]]).toEqual(['c:', 'next', 'c:1', String(CLAIM)]);
    expect(await lock.queue()).toEqual(['x c:1 30000']);
  });

  it.each([
    ['for the whole lease within a second', 50, 30_000],
    ['for a claim where the arrival is in the future', -5_000, CLAIM],
    ['for no longer than the lease', 1_500, 300],
  ])('comes %s', async (_, ago, span) => {
    const lease = span === CLAIM ? 30_000 : span;
    await lock.holders('5 a:1 fair 1', { 'xa:1': 5_000 });
    await lock.waiters({ [`x b:1 ${String(lease)}`]: ago });
    await lock.listen('b');
    await release('a:1');
    const [[, , , , , told, , rivals] = []] = granted(await lock.told());
    expect([told, rivals]).toEqual([String(span), '0']);
  });

  it('passes over a waiter whose process is gone', async () => {
    await lock.holders('5 a:1 fair 1', { 'xa:1': 5_000 });
    await lock.waiters({ 'x gone:1 30000': 1_500, 'x gone:2 30000': 1_400, 'x b:1 30000': 1_200 });
    await lock.listen('b');
    await release('a:1');
    expect(granted(await lock.told()).map(([, , owner]) => owner)).toEqual(['b:1']);
    expect(await lock.queue()).toEqual([]);
    expect(Object.keys(await lock.ends())).toEqual(['xb:1']);
  });

  it('is told to the first that lives, while the lock is busy', async () => {
    await lock.holders('5 a:1 fair 1', { 'xa:1': 5_000 });
    await lock.waiters({ 'x gone:1 30000': 90, 'x gone:2 30000': 80, 'x b:1 30000': 50 });
    await lock.listen('b');
    expect(await release('c:1')).toBe(-1);
    expect(await lock.queue()).toEqual(['x b:1 30000']);
    expect((await lock.told()).map((message) => message.split(' ').slice(0, 3).join(' '))).toEqual([
      'b: next b:1',
    ]);
  });

  it('comes to all readers up to the next writer', async () => {
    await lock.holders('5 a:1 read-write 1000', { 'xa:1': 5_000 });
    await lock.waiters({ 's b:1 30000': 50, 's b:2 30000': 40, 'x c:1 30000': 30, 's d:1 30000': 20 });
    await lock.listen('b', 'c', 'd');
    await release('a:1', WRITE);
    const told = await lock.told();
    expect(granted(told).map(([, , owner, , , , , rivals]) => [owner, rivals])).toEqual([
      ['b:1', '1'],
      ['b:2', '1'],
    ]);
    expect(told.at(-1)?.split(' ').slice(0, 3)).toEqual(['c:', 'next', 'c:1']);
    expect(await lock.queue()).toEqual(['x c:1 30000', 's d:1 30000']);
  });

  it('comes when another owner asks after the end of a hold', async () => {
    await lock.holders('5 a:1 fair 1', { 'xa:1': -1 });
    await lock.waiters({ 'x b:1 30000': 1_500 });
    await lock.listen('b');
    expect((await acquire('c:1'))[0]).toBe(0);
    expect(granted(await lock.told()).map(([, , owner]) => owner)).toEqual(['b:1']);
    expect(await lock.queue()).toEqual([`x c:1 ${String(LEASE)}`]);
  });

  it('comes to the owner that asks as an answer, and those behind it that may enter are told', async () => {
    await lock.fence('5 z:1 read-write 1000');
    const entry = `s a:1 ${String(LEASE)}`;
    await lock.waiters({ [entry]: 1_500, 's b:1 30000': 50 });
    await lock.listen('a', 'b');
    expect((await acquire('a:1', READ))[0]).toBe(1);
    expect(granted(await lock.told()).map(([, , owner]) => owner)).toEqual(['b:1']);
    expect(await lock.queue()).toEqual([]);
  });

  it('for a waiter of another kind is a word that it asks', async () => {
    await lock.holders('5 a:1 fair 1', { 'xa:1': 5_000 });
    await lock.waiters({ 'x b:1 30000': 50, 'p c:1 30000': 30 });
    await lock.listen('b', 'c');
    await release('a:1');
    await lock.waiters({ 'p c:1 30000': 30 });
    await release('b:1');
    expect((await lock.told()).map((message) => message.split(' ').slice(0, 4).join(' '))).toContain(
      'c: next c:1 0',
    );
    expect(await lock.queue()).toEqual([]);
  });

  it('of a plain waiter that lives is a claim of the plain lock, which comes first', async () => {
    await lock.waiters({ 'p gone:1 30000': 90, 'p b:1 30000': 70, 'x c:1 30000': 30 });
    await lock.fence('5 z:1');
    await lock.listen('b', 'c');
    expect(await acquire('a:1')).toEqual([-1, 'lock', 1]);
    const [[, , owner, token, , span, , rivals] = []] = granted(await lock.told());
    expect([owner, span, rivals]).toEqual(['b:1', String(CLAIM), '1']);
    expect(await lock.redis.hgetall(LOCK)).toEqual({ 'b:1': '1' });
    expect(await lock.redis.get(FENCE)).toBe(`${String(token)} b:1`);
    expect(await lock.endOf(FENCE)).toBe((await lock.endOf(LOCK)) + STAY);
    expect(await lock.queue()).toEqual(['x c:1 30000']);
  });

  it('of a plain waiter is for no longer than the lease that it has asked for', async () => {
    await lock.waiters({ 'p b:1 300': 70 });
    await lock.listen('b');
    await acquire('a:1');
    const [[, , owner, , , span, , rivals] = []] = granted(await lock.told());
    expect([owner, span, rivals]).toEqual(['b:1', '300', '0']);
    await lock.clear();
    await lock.listen('b');
    await lock.waiters({ 'p b:1': 70 });
    await acquire('a:1');
    expect(granted(await lock.told())[0]?.[5]).toBe(String(CLAIM));
  });

  it('of plain waiters that are all gone is not waited for', async () => {
    await lock.waiters({ 'p gone:1 30000': 90, 'p gone:2 300': 70 });
    await lock.fence('5 z:1');
    expect((await acquire('a:1'))[0]).toBe(1);
    expect(await lock.queue()).toEqual([]);
  });

  it('is told behind a claim to the 1st, 2nd, 4th and last process', async () => {
    await lock.holders('5 a:1 fair 1', { 'xa:1': 5_000 });
    const clients = ['b', 'c', 'd', 'e', 'f', 'g', 'h'];
    const entries = clients.flatMap((client, n) => [
      [`x ${client}:1 30000`, 1_500 - 2 * n],
      [`x ${client}:2 30000`, 1_499 - 2 * n],
    ]);
    await lock.waiters(Object.fromEntries(entries) as Record<string, number>);
    await lock.listen(...clients);
    await release('a:1');
    const next = (await lock.told())
      .map((message) => message.split(' '))
      .filter(([, type]) => type === 'next');
    // The head is the second waiter of the process that has got the claim: "b:2". Behind it: c, d, e, f, g, h.
    expect(next.map(([, , owner, left]) => [owner, Number(left)])).toEqual([
      ['b:2', CLAIM],
      ['c:1', CLAIM + 10],
      ['d:1', CLAIM + 30],
      ['f:1', CLAIM + 70],
      ['h:1', CLAIM + 110],
    ]);
  });

  it.each<[string, (place: number) => boolean, readonly number[]]>([
    ['no further back than to the 16th where one of those lives', () => true, [1, 2, 3, 5, 9, 17]],
    ['further back where all of those are gone', (place) => place < 2 || place === 41, [1, 41]],
  ])('is told behind a claim %s', async (_, lives, told) => {
    await lock.holders('5 a:1 fair 1', { 'xa:1': 5_000 });
    const clients = Array.from({ length: 42 }, (_, place) => `p${String(place)}`);
    await lock.waiters(Object.fromEntries(clients.map((client, n) => [`x ${client}:1 30000`, 1_500 - n])));
    await lock.listen(...clients.filter((_, place) => lives(place)));
    await release('a:1');
    // The first has got the claim, and the second is the head.
    const next = (await lock.told()).flatMap((message) => /next p(\d+):1/.exec(message)?.[1] ?? []);
    expect(next.map(Number)).toEqual(told);
  });
});

describe('A release of a lock with holders', () => {
  it('by another owner changes nothing, and says whether it is held', async () => {
    const ends = await lock.holders('5 b:1 fair 1', { 'xb:1': 5_000 });
    expect(await release('a:1')).toBe(-1);
    expect(await lock.ends()).toEqual(ends);
    await lock.clear();
    expect(await release('a:1')).toBe(0);
  });

  it('gives up the entry, by the lease that was asked for or by a search', async () => {
    await lock.holders('5 b:1 fair 1', { 'xb:1': 5_000 });
    await lock.listen('a');
    await lock.waiters({ 'x a:1 7': 90, 'x a:1 9': 80, 'x a:10 7': 70 });
    expect(await release('a:1', { asked: 9 })).toBe(-1);
    expect(await lock.queue()).toEqual(['x a:1 7', 'x a:10 7']);
    await release('a:1', { asked: 0 });
    expect(await lock.queue()).toEqual(['x a:10 7']);
  });

  it('lets no waiter of the plain lock lose its entry', async () => {
    await lock.fence('5 z:1');
    await lock.waiters({ 'p b:1 7': 90 });
    expect(await release('a:1')).toBe(0);
    expect(await lock.queue()).toEqual(['p b:1 7']);
  });

  it('leaves the lock taken for as long as was asked for, under another owner', async () => {
    await lock.holders('5 a:1 fair 1', { 'xa:1': 5_000 });
    await lock.waiters({ 'x b:1 30000': 50 });
    await lock.listen('b');
    expect(await release('a:1', { keepFor: 60_000 })).toBe(1);
    const ends = await lock.ends();
    expect(Object.keys(ends)).toEqual(['xkept:a:1']);
    expect(await lock.endOf(LOCK)).toBe(ends['xkept:a:1']);
    expect(await lock.endOf(FENCE)).toBe((ends['xkept:a:1'] ?? 0) + STAY);
    expect((await lock.told()).map((message) => message.split(' ').slice(0, 3).join(' '))).toEqual([
      'b: next b:1',
    ]);
    expect(await release('a:1', { keepFor: 60_000 })).toBe(-1);
    expect(await lock.ends()).toEqual(ends);
  });
});

describe('A hold that passes to another owner', () => {
  const pass = async (owner: string, next: string, ask: Ask & { least?: number } = {}) => {
    const { mode = 'x', kind = 'fair', capacity = 1, lease = LEASE, least = 0 } = ask;
    return (await lock.run(
      queueTransfer,
      ...[owner, next, mode, kind, capacity, lease, least, STAY, ''],
    )) as [number, number, number];
  };

  it('is one hold with another owner and a greater token', async () => {
    await lock.holders('5 a:1 fair 1', { 'xa:1': 5_000 });
    const [code, token, now] = await pass('a:1', 'b:1');
    expect(code).toBe(1);
    expect(await lock.ends()).toEqual({ 'xb:1': now + LEASE });
    expect([await lock.endOf(LOCK), await lock.endOf(FENCE)]).toEqual([now + LEASE, now + LEASE + STAY]);
    expect(await lock.redis.get(FENCE)).toBe(`${String(token)} b:1 fair 1`);
  });

  it('has at least the token that was asked for', async () => {
    await lock.holders('5 a:1 fair 1', { 'xa:1': 5_000 });
    expect((await pass('a:1', 'b:1', { least: FAR }))[1]).toBe(FAR);
    // The same request again says the same, and makes the hold no shorter.
    const ends = await lock.ends();
    expect((await pass('a:1', 'b:1', { least: FAR, lease: 10 })).slice(0, 2)).toEqual([1, FAR]);
    expect(await lock.ends()).toEqual(ends);
    expect((await pass('a:1', 'b:1', { least: FAR + 1 }))[1]).toBe(FAR + 1);
  });

  it('does not pass from an owner without it', async () => {
    expect((await pass('a:1', 'b:1')).slice(0, 2)).toEqual([0, 0]);
    const ends = await lock.holders('5 c:1 fair 1', { 'xc:1': 5_000 });
    expect((await pass('a:1', 'b:1')).slice(0, 2)).toEqual([-1, 0]);
    expect(await lock.ends()).toEqual(ends);
  });

  it('does not pass as another kind', async () => {
    const ends = await lock.holders('5 a:1 semaphore 2', { 'sa:1': 5_000 });
    expect((await pass('a:1', 'b:1', READ)).slice(0, 2)).toEqual([-1, 0]);
    expect((await pass('a:1', 'b:1', { ...PERMIT, capacity: 3 })).slice(0, 2)).toEqual([-1, 0]);
    expect(await lock.ends()).toEqual(ends);
    expect((await pass('a:1', 'b:1', PERMIT))[0]).toBe(1);
  });

  it('tells the waiters only where it ends sooner than they know', async () => {
    await lock.holders('5 a:1 fair 1', { 'xa:1': 5_000 });
    await lock.waiters({ 'x c:1 30000': 50 });
    await lock.listen('c');
    await pass('a:1', 'b:1', { lease: 9_000 });
    expect(await lock.told()).toEqual([]);
    await pass('b:1', 'd:1', { lease: 4_000 });
    expect((await lock.told()).map((message) => message.split(' ').slice(0, 3).join(' '))).toEqual([
      'c: next c:1',
    ]);
  });

  it('leaves the other holders', async () => {
    const ends = await lock.holders('5 a:1 semaphore 2', { 'sa:1': 5_000, 'sz:1': 90_000 });
    const [, , now] = await pass('a:1', 'b:1', PERMIT);
    expect(await lock.ends()).toEqual({ 'sz:1': ends['sz:1'], 'sb:1': now + LEASE });
    expect(await lock.endOf(LOCK)).toBe(ends['sz:1']);
  });
});

describe('A renewal of a lock with holders', () => {
  const extend = async (owner: string, lease: number) =>
    (await lock.redis.eval(renew.source, 2, LOCK, FENCE, STAY, owner, lease)) as number[];

  it('makes a hold longer, never shorter, and its key and fence with it', async () => {
    await lock.holders('5 a:1 semaphore 2', { 'sa:1': 5_000, 'sb:1': 9_000 });
    expect(await extend('a:1', LEASE)).toEqual([1]);
    const ends = await lock.ends();
    expect((ends['sa:1'] ?? 0) - (ends['sb:1'] ?? 0)).toBeGreaterThan(LEASE - 9_000 - 1);
    expect(await lock.endOf(LOCK)).toBe(ends['sa:1']);
    expect(await lock.endOf(FENCE)).toBeGreaterThanOrEqual(ends['sa:1'] ?? Infinity);
    expect(await extend('a:1', 1_000)).toEqual([1]);
    expect(await extend('b:1', 1_000)).toEqual([1]);
    expect(await lock.ends()).toEqual(ends);
    expect(await lock.endOf(LOCK)).toBe(ends['sa:1']);
  });

  it('only asks with a lease of 0', async () => {
    const ends = await lock.holders('5 a:1 fair 1', { 'xa:1': 5_000 });
    const fenceEnd = await lock.endOf(FENCE);
    expect([await extend('a:1', 0), await extend('b:1', 0)]).toEqual([[1], [-1]]);
    expect([await lock.ends(), await lock.endOf(FENCE)]).toEqual([ends, fenceEnd]);
  });

  it('does not bring back a hold that is over', async () => {
    await lock.holders('5 a:1 semaphore 2', { 'sa:1': -5, 'sb:1': 9_000 });
    expect(await extend('a:1', LEASE)).toEqual([0]);
    expect(Object.keys(await lock.ends())).toEqual(['sa:1', 'sb:1']);
    // A shared holder may have been there before; an exclusive one has come instead.
    await lock.clear();
    await lock.holders('5 a:1 read-write 9', { 'xa:1': -5 });
    expect(await extend('b:1', LEASE)).toEqual([0]);
  });

  it('of what is no lock is refused, and it stays', async () => {
    await lock.redis.zadd(LOCK, 5, 'apple');
    expect(await extend('a:1', LEASE)).toEqual([-2]);
    await lock.redis.set(LOCK, 'text');
    expect(await extend('a:1', LEASE)).toEqual([-2]);
  });
});

describe('A kind with holders that a plain lock is to follow', () => {
  it('stays while it is in use', async () => {
    await lock.holders('5 a:1 semaphore 2', { 'sa:1': 5_000 });
    expect(await follow()).toEqual([-1, 'semaphore', 2]);
    expect(await lock.redis.get(FENCE)).toBe('5 a:1 semaphore 2');
  });

  it('is forgotten when it is not, and its last token stays', async () => {
    await lock.fence('5 a:1 semaphore 2');
    await lock.waiters({ 's gone:1 7': 90 });
    expect(await follow()).toEqual([-1, 'lock', 1]);
    expect(await lock.redis.get(FENCE)).toBe('5 a:1');
    expect(await lock.redis.pttl(FENCE)).toBeGreaterThan(STAY / 2);
    expect(await follow()).toEqual([-1, 'lock', 1]);
  });

  it('stays while it has waiters, also without a fence', async () => {
    await lock.waiters({ 's b:1 30000': 90 });
    await lock.listen('b');
    expect(await follow()).toEqual([-1, 'queued', 1]);
  });

  it('gives its waiters their turn before', async () => {
    await lock.fence('5 a:1 semaphore 2');
    await lock.waiters({ 's b:1 30000': 90 });
    await lock.listen('b');
    expect(await follow()).toEqual([-1, 'semaphore', 2]);
    expect(Object.keys(await lock.ends())).toEqual(['sb:1']);
  });
});

describe('A look at a lock with holders', () => {
  const look = async (place = '') =>
    (await lock.run(inspect, 'NUMSUB', 'channel', place)) as unknown[] | null;

  it('shows its holders with their time, its waiters, and the processes that are gone', async () => {
    await lock.holders('5 a:1 semaphore 3', { 'sa:1': 9_000, 'sb:1': -5 });
    const arrivals = await lock.waiters({ 's b:2 7': 90, 's c:1 7': 80, 's c:2 7': 70 });
    await lock.listen('b');
    const [fence, listeners, holders, queue, withHolders, gone] = (await look()) ?? [];
    expect([fence, listeners, withHolders, gone]).toEqual(['5 a:1 semaphore 3', 0, 1, ['c']]);
    const [owner, left] = holders as [string, number];
    expect([owner, (holders as unknown[]).length]).toEqual(['sa:1', 2]);
    expect(left).toBeGreaterThan(4_000);
    expect(queue).toEqual(
      Object.entries(arrivals)
        .map(([entry, at]) => [entry, String(at)])
        .flat(),
    );
    expect((await look('cluster'))?.[5]).toEqual([]);
  });

  it('shows a queue without a holder by its kind, and nothing where there is neither', async () => {
    expect(await look()).toBeNull();
    await lock.waiters({ 's b:2 7': 90 });
    expect((await look())?.slice(2, 5)).toMatchObject([[], ['s b:2 7', expect.any(String)], 1]);
    await lock.clear();
    await lock.waiters({ 'p b:2 7': 90 });
    expect((await look())?.[4]).toBe(0);
    await lock.clear();
    await lock.plain('a:1', 5_000);
    await lock.waiters({ 'x b:2 7': 90 });
    expect((await look())?.[4]).toBe(0);
  });
});
