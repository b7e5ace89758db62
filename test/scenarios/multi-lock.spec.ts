import { afterEach, describe, expect, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Lock, LockService } from '../../lib/index.js';
import type { RedisServer } from '../support/redis-server.js';
import type { HoldRecord, Worker } from '../support/worker.js';
import { Cast } from './cast.js';
import { overlaps } from './history.js';

/** Nobody may have to watch so many others pass: who gets in is a matter of luck, but not of so much. */
const PATIENCE = 100;

describe('Several locks at once', () => {
  const cast = new Cast();
  let server: RedisServer;

  afterEach(() => cast.end());

  const services = async (count: number): Promise<LockService[]> => {
    server = await cast.server();
    return Array.from({ length: count }, () => cast.service({ connection: server.url, waitTime: 60_000 }));
  };

  /** Everybody wants some of the names, again and again. */
  async function crowd(
    wishes: readonly (() => { names: readonly string[]; lock: Lock })[],
    rounds: number,
  ): Promise<number> {
    const held = new Set<string>();
    let grants = 0;
    let longest = 0;
    await Promise.all(
      wishes.map(async (wish) => {
        for (let round = 0; round < rounds; round++) {
          const { names, lock } = wish();
          const asked = grants;
          const lease = await lock.acquire();
          longest = Math.max(longest, grants - asked);
          grants++;
          for (const name of names) {
            expect(held.has(name)).toBe(false);
            held.add(name);
          }
          await sleep(Math.random() * 2);
          expect(lease.held).toBe(true);
          for (const name of names) held.delete(name);
          await lease.release();
        }
      }),
    );
    expect(grants).toBe(wishes.length * rounds);
    return longest;
  }

  const some = (count: number, of: number) => {
    const names = Array.from({ length: of }, (_, n) => `n${String(n)}`);
    return names.toSorted(() => Math.random() - 0.5).slice(0, count);
  };

  it('ten that want random triples of ten names all get through 100 times, and nobody waits long', async () => {
    const wishes = (await services(10)).map((service) => () => {
      const names = some(3, 10);
      return { names, lock: service.getMultiLock(names.map((name) => service.getLock(name))) };
    });
    expect(await crowd(wishes, 100)).toBeLessThan(PATIENCE);
    expect((await server.client().keys('lock:*')).filter((key) => !key.endsWith(':fence'))).toEqual([]);
  });

  it('so do those that want pairs in opposite order, of plain locks and of fair ones', async () => {
    const [one, two] = (await services(2)) as [LockService, LockService];
    const names = ['a', 'b'];
    const pairs: [string, (service: LockService, name: string) => Lock][] = [
      ['plain', (service, name) => service.getLock(`plain:${name}`)],
      ['fair', (service, name) => service.getFairLock(`fair:${name}`)],
    ];
    for (const [, lockOf] of pairs) {
      const wishes = [one, two].map((service, n) => () => {
        const order = n === 0 ? names : names.toReversed();
        return { names, lock: service.getMultiLock(order.map((name) => lockOf(service, name))) };
      });
      expect(await crowd(wishes, 200)).toBeLessThan(PATIENCE);
    }
  });

  it('so do those that mix kinds, which cannot be taken in one step', async () => {
    const wishes = (await services(6)).map((service) => () => {
      const names = some(3, 5);
      const locks = names.map((name) => {
        const kind = Number(name.slice(1)) % 3;
        if (kind === 0) return service.getLock(name);
        return kind === 1 ? service.getFairLock(name) : service.getReadWriteLock(name).write;
      });
      return { names, lock: service.getMultiLock(locks) };
    });
    expect(await crowd(wishes, 40)).toBeLessThan(PATIENCE);
  });

  it('exclude each other across processes, and whoever holds one of the names', async () => {
    server = await cast.server();
    const workers = await cast.workers(4, { url: server.url, service: { waitTime: 60_000 } });
    const wishes = [['a', 'b'], ['b', 'a'], ['b', 'c'], 'b'];
    const race = (worker: Worker, n: number) => worker.call<HoldRecord[]>('race', wishes[n], 25, {}, 1);
    const records = (await Promise.all(workers.map(race))).flat();
    expect(records).toHaveLength(100);
    expect(overlaps(records)).toEqual([]);
  });

  it('50 names cost one command, and one for each that is given back', async () => {
    const [service] = (await services(1)) as [LockService];
    const names = Array.from({ length: 50 }, (_, n) => `n${String(n)}`);
    await (await service.acquire(names)).release(); // teaches the scripts
    const before = (await server.commandCalls()).evalsha ?? 0;
    const lease = await service.acquire(names);
    const between = (await server.commandCalls()).evalsha ?? 0;
    await lease.release();
    const after = (await server.commandCalls()).evalsha ?? 0;
    expect([between - before, after - between]).toEqual([1, 50]);
  });
});
