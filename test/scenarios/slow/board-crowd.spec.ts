import 'reflect-metadata';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import type { Lease, LockEvent } from '../../../lib/index.js';
import { BoardStage } from '../../nest/board/board-stage.js';
import { until } from '../until.js';

const stage = new BoardStage();
const PROGRAM = fileURLToPath(new URL('../board-crowd.mjs', import.meta.url));
const VIEWERS = 1_000;
const LOCKS = 5_000;
const DAY = 86_400_000;

/** Viewers in a process of its own. @returns how many of them have got which status, when all have an answer */
async function crowd(url: string, path: string): Promise<Record<string, number>> {
  const child = fork(PROGRAM, [new URL(url).port, path, String(VIEWERS)], { execArgv: [] });
  stage.afterwards(() => {
    child.kill();
  });
  const [answers] = (await once(child, 'message')) as [Record<string, number>];
  return answers;
}

/** As other processes would have taken them. */
async function holdMany(): Promise<void> {
  const pipeline = stage.server.client().pipeline();
  for (let n = 0; n < LOCKS; n++) {
    const key = `lock:order:${String(n)}`;
    pipeline.hset(key, '7d5f2c1e-0000-4000-8000-000000000000:7', 1).pexpire(key, DAY);
  }
  await pipeline.exec();
}

/** Until a renewal has prolonged it, or it is lost. */
async function renewed(lease: Lease): Promise<void> {
  let before = lease.remainingTime();
  await until(() => {
    const left = lease.remainingTime();
    const isOver = left > before || lease.signal.aborted;
    before = left;
    return isOver;
  });
}

describe('A process that holds leases of 3 s, while 1,000 viewers come to its board at once', () => {
  it.each([
    ['all of them are served', '/locks/events', { maxViewers: VIEWERS }, { 200: VIEWERS }],
    ['as many are served as the default allows', '/locks/events', {}, { 200: 100, 503: VIEWERS - 100 }],
    ['they open the page', '/locks', {}, { 200: VIEWERS }],
  ])(
    'keeps them: %s',
    async (_, path, board, answers) => {
      await holdMany();
      const { url, locks } = await stage.start({
        locks: { connection: stage.server.url, leaseTime: 3_000 },
        board: { limit: LOCKS, ...board },
      });
      const lost: LockEvent[] = [];
      locks.events$.subscribe((event) => {
        if (event.type === 'lost') lost.push(event);
      });
      const leases = await Promise.all(['a', 'b', 'c'].map((name) => locks.acquire(name)));
      expect(await crowd(url, path)).toEqual(answers);
      for (const lease of leases) await renewed(lease);
      expect(lost).toEqual([]);
      for (const lease of leases) lease.assertHeld();
      await Promise.all(leases.map((lease) => lease.release()));
    },
    60_000,
  );
});
