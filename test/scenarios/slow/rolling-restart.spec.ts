import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, it } from '@jest/globals';
import { Queue } from 'bullmq';
import { lockKeys } from '../../support/keys.js';
import { TestEnvironment } from '../../support/test-environment.js';
import { until } from '../until.js';

const PROGRAM = fileURLToPath(new URL('../export-process.mjs', import.meta.url));
const EXPORTS = 300;

/** In a process of Node: the Nest that BullMQ's module and this package find is that of test/nest-11. */
const NEST_11 = new URL('../../nest-11/package.json', import.meta.url).href;
const moduleOf = (source: string) => `data:text/javascript,${encodeURIComponent(source)}`;
const RESOLVE_NEST_11 = `export const resolve = (name, context, next) => /^@nestjs\\/(common|core)(\\/|$)/.test(name)
  ? next(name, { ...context, parentURL: ${JSON.stringify(NEST_11)} }) : next(name, context);`;
const WITH_NEST_11 = `import { register } from 'node:module';
  register(${JSON.stringify(moduleOf(RESOLVE_NEST_11))}, ${JSON.stringify(NEST_11)});`;

const environment = TestEnvironment.ofAll();

it.each([
  ['12', []],
  ['11', ['--import', moduleOf(WITH_NEST_11)]],
])(
  'a rolling restart of three processes on Nest %s fails none of 300 exports of BullMQ, and lets none overlap',
  async (nest, execArgv) => {
    const server = await environment.server();
    const redis = server.client();
    const { hostname: host, port } = new URL(server.url);
    const queue = new Queue('exports', { connection: { host, port: Number(port) } });
    environment.add(() => queue.close());

    let lines = '';
    const start = async (order: string): Promise<ChildProcess> => {
      const child = fork(PROGRAM, [server.url, order], { silent: true, execArgv });
      environment.add(() => child.kill('SIGKILL'));
      for (const stream of [child.stdout, child.stderr])
        stream?.on('data', (text) => (lines += String(text)));
      const ended = once(child, 'exit').then(([code]) => `exit ${String(code)}: ${lines}`);
      const version = await Promise.race([once(child, 'message').then(String), ended]);
      expect(version).toMatch(new RegExp(`^${nest}\\.`));
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
    expect(restarts).toBeGreaterThan(0);
    const exits = crew.map((child) => once(child, 'exit'));
    for (const child of crew) child.kill('SIGTERM');
    await Promise.all(exits);
    expect(lines).not.toMatch(/Lost the lock|shutting down/);
    await until(async () => (await lockKeys(redis)).length === 0);
  },
  120_000,
);
