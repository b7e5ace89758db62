import { describe, expect, it } from '@jest/globals';
import type { Lock, LockService } from '../../../lib/index.js';
import type { Random } from '../../programs/chaos/random.js';
import { FAIR, type Kind, lockOf, PLAIN, semaphore, WRITE } from '../../queue/kinds.js';
import { holdFor } from '../../world/holds.js';
import { inWorld, type Stage } from '../../world/index.js';

/** Chance decides which caller is next, but none has to watch so many others pass. */
const MOST_OTHERS = 100;
/** A caller of one of the names alone is granted after 6 turns of it. */
const MOST_TURNS = 200;
const OPTIONS = { waitTime: 60_000, lockOrder: 'off' } as const;

const services = ({ process }: Stage, count: number): LockService[] =>
  Array.from({ length: count }, () => process(OPTIONS).locks);

interface Wish {
  readonly names: readonly string[];
  readonly lock: Lock;
}

/** Callers that each want some of the names, again and again. @returns the most that one has watched pass */
async function crowd(
  { pass, world }: Stage,
  wishes: readonly (() => Wish)[],
  rounds: number,
): Promise<number> {
  const held = new Set<string>();
  const random = world.random.fork();
  let [grants, longest] = [0, 0];
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
        await pass(random.next() * 2);
        expect(lease.held).toBe(true);
        for (const name of names) held.delete(name);
        await lease.release();
      }
    }),
  );
  expect(grants).toBe(wishes.length * rounds);
  return longest;
}

const some = (random: Random, count: number, of: number) => {
  const names = Array.from({ length: of }, (_, n) => `n${String(n)}`);
  return Array.from({ length: count }, () => names.splice(random.between(0, names.length - 1), 1)[0]!);
};

/** Three processes whose callers want each of the names again and again, two more than it has room for. */
async function steadily(stage: Stage, kinds: Readonly<Record<string, Kind>>) {
  const all = services(stage, 3);
  let [stopped, turns] = [false as boolean, 0];
  const loops = Object.entries(kinds).flatMap(([name, kind]) =>
    [...all, ...all].map(async (service) => {
      while (!stopped) {
        await holdFor(stage, lockOf(service, name, kind), {}, 5);
        turns++;
      }
    }),
  );
  await stage.pass(200);
  return {
    turns: () => turns,
    stop: () => {
      stopped = true;
      return Promise.all(loops);
    },
  };
}

const together = (service: LockService, kinds: Readonly<Record<string, Kind>>) =>
  service.getMultiLock(Object.entries(kinds).map(([name, kind]) => lockOf(service, name, kind)));

describe('Several locks at once', () => {
  it('ten that want random triples of ten names all get through 5 times, and none waits long', () =>
    inWorld(2, async (stage) => {
      const random = stage.world.random.fork();
      const wishes = services(stage, 10).map((service) => () => {
        const names = some(random, 3, 10);
        return { names, lock: service.getMultiLock(names.map((name) => service.getLock(name))) };
      });
      expect(await crowd(stage, wishes, 5)).toBeLessThan(MOST_OTHERS);
      // The labels of processes that have waited for long stay.
      expect(stage.server.keys.filter((key) => !key.includes('label'))).toEqual([]);
    }));

  it.each<[string, Kind]>([
    ['plain', PLAIN],
    ['fair', FAIR],
  ])('callers that want pairs in opposite order all get through, of %s locks', (_, kind) =>
    inWorld(3, async (stage) => {
      const names = ['a', 'b'];
      const wishes = services(stage, 2).map((service, n) => () => {
        const order = n === 0 ? names : names.toReversed();
        return { names, lock: service.getMultiLock(order.map((name) => lockOf(service, name, kind))) };
      });
      expect(await crowd(stage, wishes, 40)).toBeLessThan(MOST_OTHERS);
    }),
  );

  it('callers that mix kinds, which cannot be taken in one step, all get through', () =>
    inWorld(4, async (stage) => {
      const random = stage.world.random.fork();
      const kindOf = (name: string) => [PLAIN, FAIR, WRITE][Number(name.slice(1)) % 3]!;
      const wishes = services(stage, 6).map((service) => () => {
        const names = some(random, 3, 5);
        return {
          names,
          lock: service.getMultiLock(names.map((name) => lockOf(service, name, kindOf(name)))),
        };
      });
      expect(await crowd(stage, wishes, 7)).toBeLessThan(MOST_OTHERS);
    }));
});

describe('Several locks that are never free at the same time', () => {
  it.each<[string, Kind, Kind]>([
    ['two fair locks', FAIR, FAIR],
    ['two write locks', WRITE, WRITE],
    ['two semaphores', semaphore(2), semaphore(2)],
    ['a fair lock and a write lock', FAIR, WRITE],
    ['a semaphore and a fair lock', semaphore(2), FAIR],
  ])('%s with steady queues are granted in a bounded number of turns', (_, a, b) =>
    inWorld(8, async (stage) => {
      const [service] = services(stage, 1);
      const { turns, stop } = await steadily(stage, { a, b });
      for (let n = 0; n < 3; n++) {
        const asked = turns();
        await (await together(service!, { a, b }).acquire({ waitTime: 25_000 })).release();
        expect(turns() - asked).toBeLessThan(MOST_TURNS);
      }
      await stop();
    }),
  );

  it('plain locks of one server that single callers want without a pause are granted in a bounded time', () =>
    inWorld(9, async (stage) => {
      const names = ['a', 'b', 'c', 'd'];
      const [several, ...single] = services(stage, 3);
      const { now, pass } = stage;
      const end = now() + 3_000;
      const loops = single.flatMap((service) =>
        [...names, ...names].map(async (name) => {
          while (now() < end) {
            await holdFor(stage, service.getLock(name), {}, 5);
            await pass(2);
          }
        }),
      );
      let turns = 0;
      const lock = several!.getMultiLock(names.map((name) => several!.getLock(name)));
      while (now() < end) {
        await holdFor(stage, lock, {}, 2);
        if (now() < end) turns++;
        await pass(2);
      }
      await Promise.all(loops);
      // Without holding some it is a matter of luck: one at most.
      expect(turns).toBeGreaterThan(2);
    }));

  it.each<[string, Kind, number]>([
    ['a fair', FAIR, 500],
    ['a plain', PLAIN, 1_000],
  ])('%s one that is held for long keeps the other from no caller', (_, kind, most) =>
    inWorld(11, async (stage) => {
      const [service, holder, other] = services(stage, 3);
      const { now, pass } = stage;
      const { stop } = await steadily(stage, { a: kind });
      const held = await lockOf(holder!, 'z', kind).acquire();
      const waiting = together(service!, { a: kind, z: kind }).acquire();
      // However often it has been refused until then.
      await pass(1_000);
      const waits: number[] = [];
      for (let n = 0; n < 50; n++) {
        const asked = now();
        await holdFor(stage, lockOf(other!, 'a', kind), {}, 5);
        waits.push(now() - asked);
      }
      expect(Math.max(...waits)).toBeLessThan(most);
      await held.release();
      await (await waiting).release();
      await stop();
    }),
  );
});
