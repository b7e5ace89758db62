import { describe, expect, it } from '@jest/globals';
import { inspect, queueAcquire, queueRelease, renew } from '../../../support/scripts.js';
import { BareLock, CLAIM, FAR, FENCE, LEASE, LOCK, QUEUE, STAY } from './bare-lock.js';

const lock = BareLock.set();

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
    expect(Math.abs((await lock.endOf(FENCE)) - (now + LEASE + STAY))).toBeLessThan(1_000);
    expect(await lock.redis.get(FENCE)).toBe(`${String(token)} a:1 fair 1`);
  });

  it('gives a greater token than the last one, by more where a process may have given out others', async () => {
    await lock.fence(`${String(FAR)} z:1 fair 1`);
    expect((await acquire('a:1'))[3]).toBe(FAR + 1);
    await lock.clear();
    await lock.fence(`${String(FAR)} z:1`);
    expect((await acquire('a:1'))[3]).toBe(FAR + 1_000);
  });
});

describe('An owner that has the lock already', () => {
  it('keeps its token, and holds for a whole lease from now on', async () => {
    await lock.holders('5 a:1 fair 1', { 'xa:1': CLAIM });
    const [code, now, , token] = await acquire('a:1');
    expect([code, token]).toEqual([1, 5]);
    expect(await lock.ends()).toEqual({ 'xa:1': now + LEASE });
    expect(await lock.endOf(LOCK)).toBe(now + LEASE);
    expect(Math.abs((await lock.endOf(FENCE)) - (now + LEASE + STAY))).toBeLessThan(1_000);
  });

  it('gets it back where the fence has been evicted', async () => {
    await lock.holders('', { 'xa:1': CLAIM });
    await lock.redis.del(FENCE);
    const [code, , , token] = await acquire('a:1');
    expect([code, await lock.redis.get(FENCE)]).toEqual([1, `${String(token)} a:1 fair 1`]);
  });
});

describe('A lock with holders that is busy', () => {
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

  it('holds no lock where no fence says so', async () => {
    await lock.holders('5 b:1', { 'xb:1': 5_000 });
    await expect(acquire('a:1')).rejects.toThrow(/^WRONGTYPE/);
    await expect(lock.run(inspect, 'NUMSUB', 'c', '')).rejects.toThrow(/^WRONGTYPE/);
    await lock.redis.del(FENCE);
    await expect(acquire('a:1')).rejects.toThrow(/^WRONGTYPE/);
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

describe('A turn', () => {
  const granted = (told: readonly string[]) =>
    told.map((message) => message.split(' ')).filter(([, type]) => type === 'granted');

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
    expect(Math.abs((await lock.endOf(FENCE)) - (await lock.endOf(LOCK)) - STAY)).toBeLessThan(1_000);
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
  it('lets no waiter of the plain lock lose its entry', async () => {
    await lock.fence('5 z:1');
    await lock.waiters({ 'p b:1 7': 90 });
    expect(await release('a:1')).toBe(0);
    expect(await lock.queue()).toEqual(['p b:1 7']);
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

  it('does not bring back a hold that is over', async () => {
    await lock.holders('5 a:1 semaphore 2', { 'sa:1': -5, 'sb:1': 9_000 });
    expect(await extend('a:1', LEASE)).toEqual([0]);
    expect(Object.keys(await lock.ends())).toEqual(['sa:1', 'sb:1']);
    // A shared holder may have been there before; an exclusive one has come instead.
    await lock.clear();
    await lock.holders('5 a:1 read-write 9', { 'xa:1': -5 });
    expect(await extend('b:1', LEASE)).toEqual([0]);
  });
});

describe('A kind with holders that a plain lock is to follow', () => {
  it('is forgotten when it is not, and its last token stays', async () => {
    await lock.fence('5 a:1 semaphore 2');
    await lock.waiters({ 's gone:1 7': 90 });
    expect(await follow()).toEqual([-1, 'lock', 1]);
    expect(await lock.redis.get(FENCE)).toBe('5 a:1');
    expect(await lock.redis.pttl(FENCE)).toBeGreaterThan(STAY / 2);
    expect(await follow()).toEqual([-1, 'lock', 1]);
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
});
