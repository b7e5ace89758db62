import { afterEach, describe, expect, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Lock, LockService } from '../../lib/index.js';
import type { RedisServer } from '../support/redis-server.js';
import type { HoldRecord, Worker } from '../support/worker.js';
import { TestEnvironment } from '../support/test-environment.js';
import { overlaps } from './history.js';
import { lockKeys } from '../support/keys.js';

/** Nobody may have to watch so many others pass: who gets in is a matter of luck, but not of so much. */
const PATIENCE = 100;

describe('Several locks at once', () => {
  const environment = new TestEnvironment();
  let server: RedisServer;

  afterEach(() => environment.end());

  const services = async (count: number): Promise<LockService[]> => {
    server = await environment.server();
    return Array.from({ length: count }, () =>
      environment.service({ connection: server.url, waitTime: 60_000 }),
    );
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

  it('thousands of names in one call, beside other calls of the same turn: all get their locks', async () => {
    const [service] = (await services(1)) as [LockService];
    const many = Array.from({ length: 4_500 }, (_, n) => `many:${String(n)}`);
    const leases = await Promise.all(
      ['first', 'second', many, 'third'].map((names) => service.acquire(names, { waitTime: 0 })),
    );
    expect(leases.every(({ held }) => held)).toBe(true);
    await Promise.all(leases.map((lease) => lease.release()));
    expect(await lockKeys(server.client())).toEqual([]);
  });

  it('ten that want random triples of ten names all get through 100 times, and none waits long', async () => {
    const wishes = (await services(10)).map((service) => () => {
      const names = some(3, 10);
      return { names, lock: service.getMultiLock(names.map((name) => service.getLock(name))) };
    });
    expect(await crowd(wishes, 100)).toBeLessThan(PATIENCE);
    expect(await lockKeys(server.client())).toEqual([]);
  });

  it('callers that want pairs in opposite order all get through, of plain locks and of fair ones', async () => {
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

  it('callers that mix kinds, which cannot be taken in one step, all get through', async () => {
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

  describe('that are never free at the same time', () => {
    type Make = (service: LockService, name: string) => Lock;
    interface Kind {
      readonly options: object;
      readonly make: Make;
    }
    const fair: Kind = { options: { kind: 'fair' }, make: (service, name) => service.getFairLock(name) };
    const write: Kind = {
      options: { kind: 'write' },
      make: (service, name) => service.getReadWriteLock(name).write,
    };
    const pool: Kind = {
      options: { kind: 'semaphore', permits: 2 },
      make: (service, name) => service.getSemaphore(name, 2),
    };

    /** Three processes that want one of the names again and again, and two waiters more of each than it has places. */
    async function steadily(
      kinds: Record<string, Kind>,
    ): Promise<{ turns: () => number; stop(): Promise<unknown> }> {
      const workers = await environment.workers(3, { url: server.url, service: { waitTime: 60_000 } });
      let stopped = false;
      let turns = 0;
      const loops = Object.entries(kinds).flatMap(([name, { options }]) =>
        [...workers, ...workers].map(async (worker) => {
          while (!stopped) {
            await worker.call('holdFor', name, options, 5);
            turns++;
          }
        }),
      );
      await sleep(200);
      return {
        turns: () => turns,
        stop: () => {
          stopped = true;
          return Promise.all(loops);
        },
      };
    }

    /** Each alone is granted after 6 turns. */
    const MOST_TURNS = 200;

    it.each<[string, Kind, Kind]>([
      ['two fair locks', fair, fair],
      ['two write locks', write, write],
      ['two semaphores', pool, pool],
      ['a fair lock and a write lock', fair, write],
      ['a semaphore and a fair lock', pool, fair],
    ])('%s with steady queues are granted in a bounded number of turns', async (_, one, two) => {
      const [service] = (await services(1)) as [LockService];
      const { turns, stop } = await steadily({ a: one, b: two });
      for (let n = 0; n < 3; n++) {
        const asked = turns();
        const lock = service.getMultiLock([one.make(service, 'a'), two.make(service, 'b')]);
        await (await lock.acquire({ waitTime: 25_000 })).release();
        expect(turns() - asked).toBeLessThan(MOST_TURNS);
      }
      await stop();
    });

    it('plain locks of one server that single callers want without a pause are granted in a bounded number of turns', async () => {
      server = await environment.server();
      const names = ['a', 'b', 'c', 'd'];
      const [several, ...single] = await environment.workers(3, { url: server.url });
      const time = 12_000;
      const loops = single.flatMap((worker) =>
        [...names, ...names].map((name) => worker.call('loop', name, time, { waitTime: 60_000 }, 5, 2)),
      );
      const turns = await several!.call<object[]>('loop', names, time, { waitTime: time }, 2, 2);
      await Promise.all(loops);
      // In the time of one each alone is granted hundreds of times. Without holding some it is a matter of luck: 1 or 2.
      expect(turns.filter((turn) => 'granted' in turn).length).toBeGreaterThan(2);
    }, 60_000);

    it('two multi-locks in opposite order, and one of three, are granted in a bounded number of turns', async () => {
      const all = await services(3);
      const { turns, stop } = await steadily({ a: fair, b: write, c: fair });
      const asked = turns();
      const wishes = [
        ['a', 'b'],
        ['b', 'a'],
        ['c', 'b', 'a'],
      ];
      const held = new Set<string>();
      await Promise.all(
        all.map(async (service, n) => {
          const names = wishes[n]!;
          const lock = service.getMultiLock(
            names.map((name) => (name === 'b' ? write : fair).make(service, name)),
          );
          for (let round = 0; round < 3; round++) {
            await lock.using({ waitTime: 25_000 }, async () => {
              for (const name of names) {
                expect(held.has(name)).toBe(false);
                held.add(name);
              }
              await sleep(2);
              for (const name of names) held.delete(name);
            });
          }
        }),
      );
      expect(turns() - asked).toBeLessThan(9 * MOST_TURNS);
      await stop();
    });

    it('one that is held for long keeps the other from no caller', async () => {
      const [service, holder] = (await services(2)) as [LockService, LockService];
      const { stop } = await steadily({ a: fair });
      const other = await holder.getFairLock('b').acquire();
      const waiting = service.getMultiLock([service.getFairLock('a'), service.getFairLock('b')]).acquire();
      const free = service.getFairLock('a');
      // However often it has been refused until then.
      await sleep(1_000);
      const waits: number[] = [];
      for (let n = 0; n < 20; n++) {
        const asked = performance.now();
        await (await service.runInScope(() => free.acquire())).release();
        waits.push(performance.now() - asked);
      }
      expect(waits.toSorted((x, y) => x - y)[10]).toBeLessThan(500);
      await other.release();
      await (await waiting).release();
      await stop();
    });

    it('a plain one that is held for long keeps the other from no caller', async () => {
      const [service, holder, other] = (await services(3)) as [LockService, LockService, LockService];
      const lease = await holder.acquire('z');
      const waiting = service.acquire(['a', 'z']);
      const stopped = new AbortController();
      const waits: number[] = [];
      const loops = [1, 2, 3].map(async () => {
        while (!stopped.signal.aborted) {
          const asked = performance.now();
          const single = await other.acquire('a');
          waits.push(performance.now() - asked);
          await sleep(5);
          await single.release();
        }
      });
      await sleep(5_000);
      stopped.abort();
      await Promise.all(loops);
      // It was 2 s and more, for it held the one while it waited for the other, again and again.
      expect(Math.max(...waits)).toBeLessThan(1_000);
      await lease.release();
      await (await waiting).release();
    });

    it('plain ones in a circle with callers that take them by hand go on all the same', async () => {
      const [one, two, three, four] = await services(4);
      const stopped = new AbortController();
      const turns = { together: 0, byHand: 0 };
      const together = [one!, two!].map(async (service) => {
        while (!stopped.signal.aborted) {
          await service.using(['a', 'c'], () => sleep(2));
          turns.together++;
          await sleep(5);
        }
      });
      const byHand = [three!, four!].map(async (service) => {
        while (!stopped.signal.aborted) {
          await service.using('c', () => service.using('a', () => sleep(2)));
          turns.byHand++;
          await sleep(5);
        }
      });
      await sleep(6_000);
      stopped.abort();
      await Promise.all([...together, ...byHand]);
      // Hundreds each. In circles that last for seconds it was about ten.
      expect(Math.min(turns.together, turns.byHand)).toBeGreaterThan(30);
    });

    it('those of a caller that takes them by hand in another order make no deadlock', async () => {
      const [service, byHand] = (await services(2)) as [LockService, LockService];
      const { stop } = await steadily({ a: fair, b: fair });
      const both = service.getMultiLock([service.getFairLock('a'), service.getFairLock('b')]);
      const done = new AbortController();
      const together = (async () => {
        while (!done.signal.aborted) await both.using(() => sleep(2));
      })();
      // In a circle each would wait for as long as it may, which is longer than this test does.
      for (let n = 0; n < 8; n++)
        await byHand.getFairLock('b').using(() => byHand.getFairLock('a').using(() => sleep(2)));
      done.abort();
      await together;
      await stop();
    });
  });

  it('keep no free name from others while they wait, however often they are refused', async () => {
    const [waiter, other, ...holders] = (await services(6)) as [LockService, LockService, ...LockService[]];
    const stopped = new AbortController();
    // Hardly ever free all at once.
    const hot = ['a', 'x', 'y', 'z'];
    const loops = hot.flatMap((name, n) =>
      [1, 2].map(async () => {
        while (!stopped.signal.aborted) await holders[n]!.using(name, () => sleep(5));
      }),
    );
    const waiting = (async () => {
      while (!stopped.signal.aborted) await waiter.using([...hot, 'b'], () => sleep(1));
    })();
    await sleep(500);
    const waits: number[] = [];
    for (let n = 0; n < 20; n++) {
      const asked = performance.now();
      await (await other.acquire(['b', 'd'], { waitTime: 5_000 })).release();
      waits.push(performance.now() - asked);
    }
    // What was in the way a moment ago may be kept for 250 ms.
    expect(Math.max(...waits)).toBeLessThan(1_500);
    stopped.abort();
    await Promise.all([...loops, waiting]);
  });

  it('exclude each other across processes, and holders of one of the names', async () => {
    server = await environment.server();
    const workers = await environment.workers(4, { url: server.url, service: { waitTime: 60_000 } });
    const wishes = [['a', 'b'], ['b', 'a'], ['b', 'c'], 'b'];
    const race = (worker: Worker, n: number) => worker.call<HoldRecord[]>('race', wishes[n], 25, {}, 1);
    const records = (await Promise.all(workers.map(race))).flat();
    expect(records).toHaveLength(100);
    expect(overlaps(records)).toEqual([]);
  });

  it('50 names cost one command, and one when they are given back', async () => {
    const [service] = (await services(1)) as [LockService];
    const names = Array.from({ length: 50 }, (_, n) => `n${String(n)}`);
    await (await service.acquire(names)).release(); // teaches the scripts
    const before = (await server.commandCalls()).evalsha ?? 0;
    const lease = await service.acquire(names);
    const between = (await server.commandCalls()).evalsha ?? 0;
    await lease.release();
    const after = (await server.commandCalls()).evalsha ?? 0;
    expect([between - before, after - between]).toEqual([1, 1]);
  });
});
