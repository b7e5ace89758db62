import { beforeAll, describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { type LockService } from '../../../lib/index.js';
import { slotOf } from '../../support/keys.js';
import { TestEnvironment } from '../../support/test-environment.js';
import { until } from '../../scenarios/until.js';
import { serverOfAll } from '../../support/test-servers.js';

/** What Redisson's RLock sends, made anew from its published behaviour. */
const REDISSON_LOCK = `
  if redis.call('EXISTS', KEYS[1]) == 0 or redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1 then
    redis.call('HINCRBY', KEYS[1], ARGV[2], 1)
    redis.call('PEXPIRE', KEYS[1], ARGV[1])
    return nil
  end
  return redis.call('PTTL', KEYS[1])
`;
const REDISSON_UNLOCK = `
  if redis.call('HEXISTS', KEYS[1], ARGV[3]) == 0 then return nil end
  if redis.call('HINCRBY', KEYS[1], ARGV[3], -1) > 0 then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
    return 0
  end
  redis.call('DEL', KEYS[1])
  redis.call('PUBLISH', KEYS[2], ARGV[1])
  return 1
`;

const JAVA = '7a3f9c1e-5d2b-4e0a-9b6c-1f2e3d4c5b6a:42';
const OWNER = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}:\d+$/;
const LEASE = 300_000;
/** ms: what a busy machine takes between a step and a look. */
const SOON = 30_000;

describe('On the wire', () => {
  const environment = TestEnvironment.ofAll();
  const server = serverOfAll();
  let redis: Redis;
  let locks: LockService;

  beforeAll(async () => {
    redis = server.client();
    locks = environment.service({ connection: server.url, keyPrefix: '', leaseTime: LEASE });
  });

  async function listen(pattern: string): Promise<{ heard: [string, string][]; stop(): void }> {
    const listener = redis.duplicate();
    const heard: [string, string][] = [];
    listener.on('pmessage', (_, channel, message) => heard.push([channel, message]));
    await listener.psubscribe(pattern);
    return {
      heard,
      stop: () => {
        listener.disconnect();
      },
    };
  }

  const localWaiter = (name: string) =>
    until(async () => (await locks.inspect(name))?.waiters.processes === 1);

  it('a lock is a hash with its owner once, under the bare name, for the time of its lease', async () => {
    const lease = await locks.acquire('order:1');
    expect(lease.owner).toMatch(OWNER);
    expect(await redis.hgetall('order:1')).toEqual({ [lease.owner]: '1' });
    const ttl = await redis.pttl('order:1');
    expect(ttl).toBeLessThanOrEqual(LEASE);
    expect(ttl).toBeGreaterThan(LEASE - SOON);
    // The store must not forget the lock before its holder does.
    expect(lease.remainingTime()).toBeLessThan(ttl);
    await lease.release();
  });

  it('a fixed lease and a re-entry leave the count at one', async () => {
    await locks.using('order:2', { leaseTime: 60_000 }, async (outer) => {
      await using inner = await locks.acquire('order:2');
      expect(await redis.hgetall('order:2')).toEqual({ [inner.owner]: '1' });
      expect(inner.owner).toBe(outer.owner);
      expect(await redis.pttl('order:2')).toBeGreaterThan(60_000 - SOON);
    });
  });

  it('the key prefix stands before the name, in the key and in the channel', async () => {
    const prefixed = environment.service({ connection: server.url });
    const channel = await listen('*');
    const lease = await prefixed.acquire('order:3');
    expect(await redis.hgetall('lock:order:3')).toEqual({ [lease.owner]: '1' });
    await lease.release();
    await until(() => channel.heard.length > 0);
    expect(channel.heard).toEqual([['redisson_lock__channel:{lock:order:3}', '0']]);
    channel.stop();
  });

  it.each([
    ['order:4', 'redisson_lock__channel:{order:4}'],
    ['{tenant}:order', 'redisson_lock__channel:{tenant}:order'],
    ['order:{tenant}', 'redisson_lock__channel:order:{tenant}'],
    ['Bestellung №5 ✓', 'redisson_lock__channel:{Bestellung №5 ✓}'],
  ])('the release of %s says 0 on %s, once', async (name, channelName) => {
    const channel = await listen('*');
    await (await locks.acquire(name)).release();
    await redis.publish('end', '');
    await until(() => channel.heard.at(-1)?.[0] === 'end');
    expect(channel.heard).toEqual([
      [channelName, '0'],
      ['end', ''],
    ]);
    channel.stop();
  });

  it.each(['order:5', '{tenant}:order:5', 'order:5:{tenant}'])(
    'the release of %s leaves the fence only, which has a TTL and the slot of the lock',
    async (name) => {
      await redis.flushall();
      const lease = await locks.acquire(name);
      await lease.release();
      const [fence = '', ...more] = await redis.keys('*');
      expect(more).toEqual([]);
      expect(slotOf(fence)).toBe(slotOf(name));
      expect(await redis.type(fence)).toBe('string');
      expect(await redis.get(fence)).toContain(String(lease.fencingToken));
      expect(await redis.pttl(fence)).toBeGreaterThan(LEASE);
    },
  );

  describe('with Redisson on the same name', () => {
    it('we wait while it holds, and are woken at once by its DEL and PUBLISH', async () => {
      await redis.hincrby('theirs', JAVA, 1);
      await redis.pexpire('theirs', LEASE);
      expect(await locks.tryAcquire('theirs')).toBeNull();
      const waiting = locks.acquire('theirs', { waitTime: 60_000 });
      await localWaiter('theirs');
      await redis.multi().del('theirs').publish('redisson_lock__channel:{theirs}', '0').exec();
      const lease = await waiting;
      await lease.release();
    });

    it('its unlock script wakes us from a name with braces too', async () => {
      const name = '{tenant}:theirs';
      const channel = `redisson_lock__channel:${name}`;
      expect(await redis.eval(REDISSON_LOCK, 1, name, LEASE, JAVA)).toBeNull();
      const waiting = locks.acquire(name, { waitTime: 60_000 });
      await localWaiter(name);
      expect(await redis.eval(REDISSON_UNLOCK, 2, name, channel, 0, LEASE, JAVA)).toBe(1);
      const lease = await waiting;
      await lease.release();
    });

    it('it is busy for us until the last of its holds is given back', async () => {
      const channel = 'redisson_lock__channel:{nested}';
      await redis.eval(REDISSON_LOCK, 1, 'nested', LEASE, JAVA);
      await redis.eval(REDISSON_LOCK, 1, 'nested', LEASE, JAVA);
      expect(await redis.hget('nested', JAVA)).toBe('2');
      expect(await locks.tryAcquire('nested')).toBeNull();
      expect(await redis.eval(REDISSON_UNLOCK, 2, 'nested', channel, 0, LEASE, JAVA)).toBe(0);
      expect(await locks.tryAcquire('nested')).toBeNull();
      expect(await redis.hgetall('nested')).toEqual({ [JAVA]: '1' });
      await redis.eval(REDISSON_UNLOCK, 2, 'nested', channel, 0, LEASE, JAVA);
      await (await locks.acquire('nested', { waitTime: 0 })).release();
    });

    it('its lock script waits for us, and is woken by our release', async () => {
      const lease = await locks.acquire('ours');
      const ttl = await redis.eval(REDISSON_LOCK, 1, 'ours', LEASE, JAVA);
      expect(ttl).toBeGreaterThan(LEASE - SOON);
      expect(ttl).toBeLessThanOrEqual(LEASE);
      expect(await redis.eval(REDISSON_UNLOCK, 2, 'ours', 'unused', 0, LEASE, JAVA)).toBeNull();
      expect(await redis.hgetall('ours')).toEqual({ [lease.owner]: '1' });

      const channel = await listen('redisson_lock__channel:{ours}');
      await lease.release();
      await until(() => channel.heard.length > 0);
      expect(channel.heard).toEqual([['redisson_lock__channel:{ours}', '0']]);
      expect(await redis.eval(REDISSON_LOCK, 1, 'ours', LEASE, JAVA)).toBeNull();
      channel.stop();
    });
  });
});

/** The part of a key that decides its cluster slot. */
