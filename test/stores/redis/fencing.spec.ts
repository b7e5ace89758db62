import { describe, expect, it } from '@jest/globals';
import type { LockService } from '../../../lib/index.js';
import { createStore } from '../../support/store.js';
import { TestEnvironment } from '../../support/test-environment.js';
import { fenceOf } from '../../support/keys.js';

const HOUR = 3_600_000;
const MONTH = 30 * 24 * HOUR;

describe('While the clock of the server is behind the fence', () => {
  const environment = TestEnvironment.ofEach();

  it('what a loser still hands on has lesser tokens than the winner', async () => {
    const server = await environment.server();
    const ahead = Date.now() * 1_000 + 600_000_000;
    await server.client().set(fenceOf('lock:a'), `${String(ahead)} former:1`);
    const [mine, other] = [
      environment.service({ connection: server.url }),
      environment.service({ connection: server.url }),
    ];
    const loser = await mine.acquire('a');
    await server.client().del('lock:a');
    const winner = await other.acquire('a');
    // A process that waits looks at what it holds. All of this is over before the answer comes.
    const heirs = Array.from({ length: 3 }, () => mine.acquire('a'));
    const released = loser.release();
    let last = loser.fencingToken;
    for (const heir of heirs) {
      const lease = await heir;
      expect(lease.fencingToken).toBeGreaterThan(last);
      expect(lease.fencingToken).toBeLessThan(winner.fencingToken);
      last = lease.fencingToken;
      void lease.release();
    }
    await released;
    await winner.release();
  });

  it('each name of a multi-lock has a token far above its own last one', async () => {
    const server = await environment.server();
    const ahead = Date.now() * 1_000 + 600_000_000;
    const last = { a: ahead, c: ahead + 7 };
    for (const [name, token] of Object.entries(last))
      await server.client().set(fenceOf(`lock:${name}`), `${String(token)} former:1`);
    const locks = environment.service({ connection: server.url });
    const lease = await locks.acquire(['a', 'b', 'c']);
    const tokens = Object.fromEntries(lease.fencingTokens);
    expect(tokens).toMatchObject({ a: last.a + 1_000, c: last.c + 1_000 });
    expect(tokens.b).toBeLessThan(ahead);
    await lease.release();
    const next = await locks.acquire('c');
    expect(next.fencingToken).toBe(last.c + 2_000);
    await next.release();
  });
});

describe('Where the fence was evicted', () => {
  const environment = TestEnvironment.ofEach();

  it('a hand-over that is sent twice is granted again, under a greater token', async () => {
    const server = await environment.server();
    const store = createStore({ connection: server.url }, { keyPrefix: 'lock:', leaseTime: 30_000 });
    environment.add(() => store.close());
    const hold = {
      name: 'a',
      owner: 'a:1',
      queue: { kind: 'lock', mode: 'exclusive', capacity: 1 },
    } as const;
    const next = { owner: 'a:2', leaseTime: 30_000 };
    await store.acquire({ ...hold, leaseTime: 30_000, queue: undefined });
    const first = await store.queues?.handOver?.(hold, next);
    if (first?.next.granted !== true) throw new Error('not granted');
    expect(await server.client().del(fenceOf('lock:a'))).toBe(1);
    const second = await store.queues?.handOver?.(hold, next);
    if (second?.next.granted !== true) throw new Error('not granted again');
    expect(second.next.fencingToken).toBeGreaterThan(first.next.fencingToken);
    // The fence is there again, and outlives the hold.
    expect(await server.client().get(fenceOf('lock:a'))).toBe(`${String(second.next.fencingToken)} a:2`);
    expect(await server.client().pttl(fenceOf('lock:a'))).toBeGreaterThan(30_000);
    expect(await store.release({ ...hold, owner: 'a:2' })).toBe('released');
  });
});

describe('A fence does not outlive an early release by the lease', () => {
  const environment = TestEnvironment.ofEach();

  it.each([
    ['plain', (locks: LockService) => locks.getLock('a').acquire({ leaseTime: '30d' })],
    ['renewed', (locks: LockService) => locks.getLock('a').acquire({ leaseTime: '30d', renew: true })],
    [
      'extended',
      async (locks: LockService) => {
        const lease = await locks.acquire('a', { leaseTime: '30s' });
        await lease.extend('30d');
        return lease;
      },
    ],
    ['fair', (locks: LockService) => locks.getFairLock('a').acquire({ leaseTime: '30d' })],
    ['read', (locks: LockService) => locks.getReadWriteLock('a').read.acquire({ leaseTime: '30d' })],
    ['semaphore', (locks: LockService) => locks.getSemaphore('a', 2).acquire({ leaseTime: '30d' })],
    ['several', (locks: LockService) => locks.acquire(['a', 'b'], { leaseTime: '30d' })],
  ])('of a %s lock', async (_, acquire) => {
    const server = await environment.server();
    const locks = environment.service({ connection: server.url });
    const lease = await acquire(locks);
    expect(await server.client().pttl(fenceOf('lock:a'))).toBeGreaterThan(MONTH);
    await lease.release();
    const left = await server.client().pttl(fenceOf('lock:a'));
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThan(2 * HOUR);
    const next = await locks.acquire('a', { kind: 'lock' });
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
  });
});
