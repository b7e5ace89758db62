import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, it } from '@jest/globals';
import { Queue } from 'bullmq';
import { lockKeys } from '../../support/keys.js';
import { TestEnvironment } from '../../support/test-environment.js';
import { until } from '../until.js';

const PROGRAM = fileURLToPath(new URL('export-process.mjs', import.meta.url));
const EXPORTS = 300;

const environment = new TestEnvironment();

afterAll(() => environment.end());

it('a rolling restart of three processes fails none of 300 exports of BullMQ, and lets none overlap', async () => {
  const server = await environment.server();
  const redis = server.client();
  const { hostname: host, port } = new URL(server.url);
  const queue = new Queue('exports', { connection: { host, port: Number(port) } });
  environment.add(() => queue.close());

  let lines = '';
  const start = async (order: string): Promise<ChildProcess> => {
    const child = fork(PROGRAM, [server.url, order], { silent: true });
    environment.add(() => child.kill('SIGKILL'));
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (text) => (lines += String(text)));
    await once(child, 'message');
    return child;
  };
  const orders = ['first', 'last', 'last'];
  const crew = await Promise.all(orders.map(start));
  await queue.addBulk(
    Array.from({ length: EXPORTS }, (_, n) => ({
      name: 'export',
      data: { customer: n % 120, time: 100 + ((n * 37) % 400) },
    })),
  );
  const ended = async () => {
    const { completed = 0, failed = 0 } = await queue.getJobCounts('completed', 'failed');
    return completed + failed;
  };
  let restarts = 0;
  for (let turn = 0; (await ended()) < EXPORTS; turn = (turn + 1) % crew.length) {
    await sleep(300);
    const leaving = crew[turn];
    const exit = leaving && once(leaving, 'exit');
    leaving?.kill('SIGTERM');
    crew[turn] = await start(orders[turn] ?? 'last');
    await exit;
    restarts++;
  }
  const failed = await queue.getFailed();
  expect(failed.map(({ failedReason }) => failedReason)).toEqual([]);
  expect([await queue.getCompletedCount(), await redis.get('overlaps')]).toEqual([EXPORTS, null]);
  expect(restarts).toBeGreaterThan(2);
  const exits = crew.map((child) => once(child, 'exit'));
  for (const child of crew) child.kill('SIGTERM');
  await Promise.all(exits);
  expect(lines).not.toMatch(/Lost the lock|shutting down/);
  await until(async () => (await lockKeys(redis)).length === 0);
}, 120_000);
