import { describe, expect, it } from '@jest/globals';
import { FAIR, lockOf, queued, queueLength, semaphore, take } from '../queue/kinds.js';
import { fenceOf, queueOf } from '../support/keys.js';
import { inWorld } from '../world/index.js';
import { Stage, until } from './stage.js';

const stage = Stage.set();
const PATIENT = { waitTime: Infinity };

describe('73: a kind check that looks at the key of the lock and not at its queue', () => {
  it('a plain lock does not enter between a dead holder and the waiters of a fair lock', () =>
    inWorld(1, async ({ process, until }) => {
      const [dead, waiter, one, two] = [process(), process(), process(), process()];
      const { locks: service } = process();
      await lockOf(dead.locks, 'kinds', FAIR).acquire({ leaseTime: 600 });
      const waiting = lockOf(waiter.locks, 'kinds', FAIR).acquire(PATIENT);
      await until(async () => (await queueLength(service, 'kinds')) === 1);
      dead.crash();
      // As often as it takes to come in the moment in which nobody holds it.
      const outcomes = new Set<unknown>();
      let granted = false;
      void waiting.then(() => (granted = true));
      const ask = (attempt: Promise<unknown>) =>
        attempt.then(
          () => outcomes.add('granted'),
          (error: unknown) => outcomes.add((error as { code: string }).code),
        );
      await until(async () => {
        await Promise.all([
          ask(one.locks.tryAcquire('kinds')),
          ask(two.locks.tryAcquire(['kinds', 'other'])),
          ask(lockOf(two.locks, 'kinds', semaphore(2)).tryAcquire()),
        ]);
        return granted;
      });
      expect([...outcomes]).toEqual(['LOCK_KIND_MISMATCH']);
      const lease = await waiting;
      expect((await service.inspect('kinds'))?.holders).toMatchObject([{ owner: lease.owner }]);
      await lease.release();
      expect(await service.inspect('kinds')).toBeNull();
      await (await service.acquire('kinds')).release();
    }));

  it('a waiter leaves no entry behind where its name becomes something else', () =>
    inWorld(1, async ({ process, until }) => {
      const [one, other] = [process(), process()];
      const holder = await one.locks.getFairLock('theirs').acquire();
      const waiting = lockOf(other.locks, 'theirs', FAIR).acquire({ waitTime: 2_000 });
      const refused = expect(waiting).rejects.toThrow();
      await until(async () => (await queueLength(one.locks, 'theirs')) === 1);
      const redis = process().redis();
      await redis.del('lock:theirs');
      await redis.hset('lock:theirs', 'redisson:1', 1);
      await refused;
      await redis.del('lock:theirs');
      await until(async () => (await one.locks.inspect('theirs')) === null);
      await holder.release();
    }));
});

describe('74: PUBLISH counts the subscribers of a pattern', () => {
  it('an observer does not make dead waiters look alive', async () => {
    const observer = stage.client();
    await observer.psubscribe('*');
    const service = stage.service();
    const holder = await service.getFairLock('observed').acquire();
    const dead = await stage.worker();
    for (let n = 0; n < 30; n++) void take(dead, 'observed', FAIR, PATIENT);
    await queued(service, 'observed', 30);
    // Each of the dead would cost a claim of a second.
    const waiting = lockOf(stage.service(), 'observed', FAIR).acquire({ waitTime: 25_000 });
    await queued(service, 'observed', 31);
    const owner = (await service.inspect('observed'))?.queue[0]?.owner ?? '';
    await dead.kill();
    // The system has closed its connections.
    const channel = `lock_queue__channel:${owner.slice(0, owner.lastIndexOf(':'))}`;
    await until(async () => Number((await stage.redis.pubsub('NUMSUB', channel))[1]) === 0);
    await holder.release();
    await (await waiting).release();
    expect(await service.inspect('observed')).toBeNull();
  });
});

describe('75: the claim of a hand-over is shorter than the lease that the caller was promised', () => {
  it.each([
    ['synchronous work right after a short wait', 0, 'process'],
    ['synchronous work right after a long one', 1_300, 'process'],
    ['a stall of Redis right after a short wait', 0, 'server'],
    ['a stall of Redis right after a long one', 1_300, 'server'],
  ])('%s does not cost the lease', (_, wait, trouble) =>
    inWorld(1, async ({ process, server, pass, until }) => {
      const [{ locks: service }, other] = [process(), process()];
      const holder = await service.getFairLock('promised').acquire();
      const worked = other.locks.getFairLock('promised').using(async (lease) => {
        if (trouble === 'process') other.pause(2_500);
        else server.pause(1_500);
        await pass(2_600);
        return lease.held;
      });
      await until(async () => (await queueLength(service, 'promised')) === 1);
      await pass(wait);
      await holder.release();
      expect(await worked).toBe(true);
    }),
  );
});

describe('76: the place of a waiter that left while the store was out of reach', () => {
  it('is gone soon after the store is there again, however short the lease is', () =>
    inWorld(1, async ({ process, pass, until }) => {
      const [{ locks: service }, away] = [process(), process({ leaseTime: 600 })];
      const redis = process().redis();
      const places = () => redis.zcard(queueOf('lock:ghosts'));
      const holder = await service.getFairLock('ghosts').acquire();
      const left = Promise.allSettled(
        Array.from({ length: 20 }, () => away.locks.getFairLock('ghosts').acquire({ waitTime: 1_000 })),
      );
      await until(async () => (await places()) === 20);
      const mend = away.cut();
      expect(new Set((await left).map(({ status }) => status))).toEqual(new Set(['rejected']));
      // Longer than their lease.
      await pass(1_500);
      expect(await places()).toBe(20);
      mend();
      await until(async () => (await places()) === 0);
      await holder.release();
    }));
});

describe('93: joining scans all that are there already', () => {
  /** The shortest time that a reader beside so many others takes the server, µs: a busy machine prolongs only some. */
  async function timeBeside(readers: number): Promise<number> {
    const name = `read:${String(readers)}`;
    const { read } = stage.service().getReadWriteLock(name);
    const leases = [await read.acquire()];
    const others = Array.from({ length: readers }, (_, n) => [Date.now() + 60_000, `sother:${String(n)}`]);
    await stage.redis.zadd(`lock:${name}`, ...others.flat());
    // The commands of a script have entries of their own.
    await stage.redis.call('CONFIG', 'SET', 'slowlog-log-slower-than', 0, 'slowlog-max-len', 1_000);
    await stage.redis.slowlog('RESET');
    for (let n = 0; n < 20; n++) leases.push(await read.acquire());
    const entries = (await stage.redis.slowlog('GET', 1_000)) as [number, number, number, string[]][];
    await stage.redis.config('SET', 'slowlog-log-slower-than', 10_000);
    await Promise.all(leases.map((lease) => lease.release()));
    const times = entries.flatMap(([, , time, [, , , key]]) => (key === `lock:${name}` ? [time] : []));
    expect(times).toHaveLength(20);
    return Math.min(...times);
  }

  it('a reader costs the server as little beside ten thousand others as beside ten', async () => {
    expect(await timeBeside(10_000)).toBeLessThan(5 * (await timeBeside(10)));
  });
});

describe('93: what the fence says of a writer, beside version 0.1.0', () => {
  const besideOwnReader = async (name: string) => {
    const locks = stage.service();
    const { read, write } = locks.getReadWriteLock(name);
    const fence = fenceOf(`lock:${name}`);
    return await locks.runInScope(async () => {
      const leases = [await write.acquire(), await read.acquire()];
      return { fence, leases, text: (await stage.redis.get(fence)) ?? '' };
    });
  };

  it('that version reads', async () => {
    const { text, leases } = await besideOwnReader('written');
    // As it was read then.
    expect(text).toMatch(/^\d+ \S+ read-write \d+$/);
    for (const lease of leases) await lease.release();
  });

  it('is looked for among the holders where that version wrote it', async () => {
    const { text, fence, leases } = await besideOwnReader('read');
    const [token, , kind, capacity] = text.split(' ');
    await stage.redis.set(fence, [token, leases[1]?.owner, kind, capacity].join(' '), 'KEEPTTL');
    const { read } = stage.service().getReadWriteLock('read');
    expect(await read.tryAcquire()).toBeNull();
    for (const lease of leases) await lease.release();
    await (await read.acquire()).release();
  });
});
