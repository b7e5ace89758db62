import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { Stage } from '../pitfalls/stage.js';
import { overlaps, tokensGrow } from '../scenarios/history.js';
import type { HoldRecord, Worker } from '../support/worker.js';
import { FAIR, type Kept, type Kind, lockOf, queued, READ, semaphore, take, WRITE } from './kinds.js';

const stage = Stage.set();
const PATIENT = { waitTime: Infinity };

const workers = (count: number) => Promise.all(Array.from({ length: count }, () => stage.worker()));

/** Each process has heard of a queue before, so that its subscription is there. */
async function warmUp(all: readonly Worker[]): Promise<void> {
  const service = stage.service();
  const holder = await service.getFairLock('warm-up').acquire();
  const waiting = all.map((worker) => worker.call('holdFor', 'warm-up', FAIR, 0));
  await queued(service, 'warm-up', all.length);
  await holder.release();
  await Promise.all(waiting);
}

describe('Three processes with 20 waiters each, 5 ms apart', () => {
  it('are granted in the order of their arrival, 20 times', async () => {
    const all = await workers(3);
    await warmUp(all);
    const service = stage.service();
    for (let run = 0; run < 20; run++) {
      const name = `run:${String(run)}`;
      const holder = await service.getFairLock(name).acquire();
      const waiting: { worker: Worker; lease: Promise<Kept> }[] = [];
      for (let n = 0; n < 60; n++) {
        const worker = all[n % 3]!;
        waiting.push({ worker, lease: take(worker, name, FAIR, PATIENT) });
        await sleep(5);
      }
      await queued(service, name, 60);
      // The store's own record of who arrived when; the tokens tell who was granted when.
      const arrived = (await service.inspect(name))!.queue.map(({ owner }) => owner);
      await holder.release();
      const granted = await Promise.all(
        waiting.map(async ({ worker, lease }, sent) => {
          const { id, owner, fencingToken } = await lease;
          await worker.call('release', id);
          return { owner, fencingToken, sent };
        }),
      );
      const inOrder = granted.toSorted((a, b) => a.fencingToken - b.fencingToken);
      expect(inOrder.map(({ owner }) => owner)).toEqual(arrived);
      // And the record is right: no process is late by as much as 40 others.
      for (const [place, { sent }] of inOrder.entries()) expect(Math.abs(place - sent)).toBeLessThan(40);
    }
  }, 60_000);
});

describe('Waiters of several processes', () => {
  it.each<[string, Kind]>([
    ['fair', FAIR],
    ['write', WRITE],
    ['semaphore', semaphore(1)],
  ])('%s: never two at once, and each token is greater than all before', async (name, kind) => {
    const all = await workers(3);
    const races = all.map((worker) =>
      worker.call<HoldRecord[]>('race', name, 15, { ...kind, ...PATIENT }, 2),
    );
    const records = (await Promise.all(races)).flat();
    expect(records).toHaveLength(45);
    expect(overlaps(records)).toEqual([]);
    expect(tokensGrow(records)).toBe(true);
    expect(records.some(({ lost }) => lost)).toBe(false);
  });

  it('readers and writers: no reader enters while one writes, and a writer has the greatest token', async () => {
    const all = await workers(3);
    const race = (kind: Kind) =>
      Promise.all(
        all.map((worker) => worker.call<HoldRecord[]>('race', 'mixed', 6, { ...kind, ...PATIENT }, 3)),
      );
    const [reads, writes] = (await Promise.all([race(READ), race(WRITE)])).map((each) => each.flat());
    expect(overlaps(writes!)).toEqual([]);
    for (const write of writes!) {
      for (const read of reads!) {
        expect(overlaps([read, write])).toEqual([]);
        expect(write.granted > read.granted).toBe(write.fencingToken > read.fencingToken);
      }
    }
  });

  it('a semaphore never has more holders than permits, and gives out all of them', async () => {
    const all = await workers(3);
    const races = all.map((worker) =>
      worker.call<HoldRecord[]>('race', 'permits', 10, { ...semaphore(4), ...PATIENT }, 20),
    );
    const records = (await Promise.all(races)).flat();
    const inside = records.map(
      ({ granted }) => records.filter((other) => other.granted <= granted && granted < other.released).length,
    );
    expect(Math.max(...inside)).toBe(4);
  });

  it('20 readers of two processes enter together when the writer leaves', async () => {
    const [x, y] = await workers(2);
    const service = stage.service();
    const writer = await lockOf(service, 'together', WRITE).acquire();
    const readers = [x!, y!].map((worker) =>
      worker.call<HoldRecord[]>('race', 'together', 10, { ...READ, ...PATIENT }, 1_000),
    );
    await queued(service, 'together', 20);
    await writer.release();
    const records = (await Promise.all(readers)).flat();
    // One after another they would take 20 s, and where one told the next, nobody would read before the last one came.
    const last = Math.max(...records.map(({ granted }) => granted));
    expect(Math.min(...records.map(({ released }) => released))).toBeGreaterThan(last);
  });
});

describe('Commands per acquisition', () => {
  it.each([
    [4, 8],
    [8, 4],
  ])('%i processes with %i waiters each that hold it for no time: at most 2.1', async (processes, each) => {
    const all = await workers(processes);
    await warmUp(all);
    await stage.server.resetCommandCalls();
    await Promise.all(all.map((worker) => worker.call('race', 'counted', each, { ...FAIR, ...PATIENT }, 0)));
    expect((await stage.requests()) / (processes * each)).toBeLessThanOrEqual(2.1);
  });

  it('waiting readers and permits cost no more', async () => {
    const all = await workers(2);
    await warmUp(all);
    await stage.server.resetCommandCalls();
    for (const kind of [READ, semaphore(3)]) {
      const name = `counted ${kind.kind ?? ''}`;
      await Promise.all(all.map((worker) => worker.call('race', name, 16, { ...kind, ...PATIENT }, 0)));
    }
    expect((await stage.requests()) / 64).toBeLessThanOrEqual(2.1);
  });
});
