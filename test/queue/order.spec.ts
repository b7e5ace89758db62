import { describe, expect, it } from '@jest/globals';
import { CLAIM } from '../../lib/store/index.js';
import { overlaps, tokensGrow } from '../scenarios/history.js';
import { holdFor, queueLength, race } from '../world/holds.js';
import { inWorld, type Stage, type WorldProcess } from '../world/index.js';
import { times } from '../support/tier.js';
import { FAIR, type Kind, lockOf, READ, semaphore, WRITE } from './kinds.js';

const PATIENT = { waitTime: Infinity };

/** Processes that have each heard of a queue before, so that their subscriptions are there. */
async function warmedUp({ process, until }: Stage, count: number): Promise<WorldProcess[]> {
  const all = Array.from({ length: count }, () => process());
  const observer = process().locks;
  const holder = await observer.getFairLock('warm-up').acquire();
  const waiting = all.map(({ locks }) => locks.getFairLock('warm-up').using(() => undefined));
  await until(async () => (await queueLength(observer, 'warm-up')) === count);
  await holder.release();
  await Promise.all(waiting);
  return all;
}

const locksOf = (all: readonly WorldProcess[], name: string, kind: Kind) =>
  all.map(({ locks }) => lockOf(locks, name, kind));

describe('Three processes with 20 waiters each, 5 ms apart', () => {
  it('are granted in the order of their arrival', () =>
    inWorld(1, async (stage) => {
      const { process, pass, until } = stage;
      const all = await warmedUp(stage, 3);
      const { locks } = process();
      for (let run = 0; run < times(2, 5); run++) {
        const name = `run:${String(run)}`;
        const holder = await locks.getFairLock(name).acquire();
        const waiting = [];
        for (let n = 0; n < 60; n++) {
          waiting.push(holdFor(stage, all[n % 3]!.locks.getFairLock(name), PATIENT));
          await pass(5);
        }
        await until(async () => (await queueLength(locks, name)) === 60);
        // The store's own record of the arrivals; the tokens tell the order of the grants.
        const arrived = (await locks.inspect(name))!.queue.map(({ owner }) => owner);
        await holder.release();
        const granted = await Promise.all(waiting);
        const inOrder = granted.toSorted((a, b) => a.fencingToken - b.fencingToken);
        expect(inOrder.map(({ owner }) => owner)).toEqual(arrived);
        // A request may overtake others that were sent 5 ms before, and no more than these.
        for (const [place, record] of inOrder.entries())
          expect(Math.abs(place - granted.indexOf(record))).toBeLessThanOrEqual(2);
      }
    }));
});

describe('Waiters of several processes', () => {
  it.each<[string, Kind]>([
    ['fair', FAIR],
    ['write', WRITE],
    ['semaphore', semaphore(1)],
  ])('%s: never two at once, and each token is greater than all before', (name, kind) =>
    inWorld(2, async (stage) => {
      const all = [stage.process(), stage.process(), stage.process()];
      const records = await race(stage, locksOf(all, name, kind), 15, PATIENT, 2);
      expect(records).toHaveLength(45);
      expect(overlaps(records)).toEqual([]);
      expect(tokensGrow(records)).toBe(true);
      expect(records.some(({ lost }) => lost)).toBe(false);
    }),
  );

  it('readers and writers: no reader enters while one writes, and a writer has the greatest token', () =>
    inWorld(3, async (stage) => {
      const all = [stage.process(), stage.process(), stage.process()];
      const [reads, writes] = await Promise.all(
        [READ, WRITE].map((kind) => race(stage, locksOf(all, 'mixed', kind), 6, PATIENT, 3)),
      );
      expect(overlaps(writes!)).toEqual([]);
      for (const write of writes!) {
        for (const read of reads!) {
          expect(overlaps([read, write])).toEqual([]);
          expect(write.granted > read.granted).toBe(write.fencingToken > read.fencingToken);
        }
      }
    }));

  it('a semaphore never has more holders than permits, and gives out all of them', () =>
    inWorld(4, async (stage) => {
      const all = [stage.process(), stage.process(), stage.process()];
      const records = await race(stage, locksOf(all, 'permits', semaphore(4)), 10, PATIENT, 20);
      const inside = records.map(
        ({ granted }) =>
          records.filter((other) => other.granted <= granted && granted < other.released).length,
      );
      expect(Math.max(...inside)).toBe(4);
    }));
});

describe('Commands per acquisition', () => {
  it.each([
    [4, 8],
    [8, 4],
  ])('%i processes with %i waiters each that hold it for no time: at most 2.1', (processes, each) =>
    inWorld(6, async (stage) => {
      const all = await warmedUp(stage, processes);
      const before = stage.server.commands;
      await race(stage, locksOf(all, 'counted', FAIR), each, PATIENT, 0);
      expect((stage.server.commands - before) / (processes * each)).toBeLessThanOrEqual(2.1);
    }),
  );
});

describe('63: dead waiters side by side cost a claim each, however long the lease is', () => {
  it.each<[string, number, Kind]>([
    ...[1, 4].map((dead): [string, number, Kind] => ['fair', dead, FAIR]),
    ['write', 2, WRITE],
    ['semaphore', 2, semaphore(1)],
  ])('%s: %i that stopped', (name, dead, kind) =>
    inWorld(8, async ({ process, now, pass, until }) => {
      const [holding, living] = [process(), process()];
      const stopped = Array.from({ length: dead }, () => process());
      const holder = await lockOf(holding.locks, name, kind).acquire();
      for (const [before, { locks }] of stopped.entries()) {
        lockOf(locks, name, kind)
          .acquire(PATIENT)
          .catch(() => undefined);
        await until(async () => (await queueLength(holding.locks, name)) === before + 1);
      }
      const waiting = lockOf(living.locks, name, kind).acquire(PATIENT);
      await until(async () => (await queueLength(holding.locks, name)) === dead + 1);
      // A waiter that has just arrived gets its whole lease, as a holder that stops.
      await pass(CLAIM + 100);
      for (const one of stopped) one.pause(600_000);
      const asked = now();
      await holder.release();
      await waiting;
      const claims = (now() - asked) / CLAIM;
      expect(claims).toBeGreaterThan(dead - 0.1);
      expect(claims).toBeLessThan(dead * 1.1 + 0.2);
    }),
  );

  it('one process that stopped with entries on both sides of a living one', () =>
    inWorld(9, async ({ process, now, pass, until }) => {
      const [holding, living, hung] = [process(), process(), process()];
      const stand = async (place: number) => {
        void hung.locks.getFairLock('mixed').acquire(PATIENT);
        await until(async () => (await queueLength(holding.locks, 'mixed')) === place);
      };
      const holder = await holding.locks.getFairLock('mixed').acquire();
      for (const place of [1, 2, 3]) await stand(place);
      const waiting = living.locks.getFairLock('mixed').acquire(PATIENT);
      await until(async () => (await queueLength(holding.locks, 'mixed')) === 4);
      await stand(5);
      await pass(CLAIM + 100);
      hung.pause(600_000);
      const asked = now();
      await holder.release();
      await waiting;
      expect(now() - asked).toBeLessThan(3.5 * CLAIM);
    }));
});
