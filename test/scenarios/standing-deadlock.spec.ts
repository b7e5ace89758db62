import 'reflect-metadata';
import { afterAll, expect, it } from '@jest/globals';
import type { BoardState } from '../../lib/board/feed/wire.js';
import { call } from '../cli/command-line.js';
import { until } from './until.js';
import { TestEnvironment } from '../support/test-environment.js';
import { startBoard } from '../nest/board/board-app.js';

const environment = new TestEnvironment();
afterAll(() => environment.end());

it('A deadlock that two processes only report is shown by the board of a third one, and by doctor', async () => {
  const server = await environment.server();
  const worker = (label: string) =>
    environment.worker({ url: server.url, service: { label, deadlock: 'report', lockOrder: 'off' } });
  const [one, two] = await Promise.all([worker('one'), worker('two')]);
  const nest = (process: typeof one, first: string, second: string, waitTime: number) =>
    process.call<{ reason?: string }>('nest', { name: first }, { name: second, waitTime }, 100);
  const over = Promise.all([nest(one, 'a', 'b', 40_000), nest(two, 'b', 'a', 80_000)]);
  const { app, url } = await startBoard({ locks: { connection: server.url, label: 'third' } });
  environment.add(() => app.close());
  const viewer = new AbortController();
  const events = fetch(`${url}/locks/events`, { signal: viewer.signal });
  const stateOf = async () => (await (await fetch(`${url}/locks/state`)).json()) as BoardState;
  await until(async () => (await stateOf()).deadlocks.length > 0);
  const [{ cycle } = { cycle: [] }] = (await stateOf()).deadlocks;
  expect(cycle.map(({ process, name }) => `${process} ${name}`).sort()).toEqual(['one b', 'two a']);
  const { code, stdout } = await call(['doctor', '--json', '--url', server.url]);
  const { findings } = JSON.parse(stdout) as { findings: object[] };
  expect([code, findings]).toEqual([
    2,
    expect.arrayContaining([
      expect.objectContaining({
        level: 'error',
        code: 'deadlock',
        message: expect.stringContaining('waits for "'),
      }),
    ]),
  ]);
  expect((await over).map(({ reason }) => reason)).toEqual(['timeout', undefined]);
  await until(async () => (await stateOf()).deadlocks.length === 0);
  viewer.abort();
  await events.catch(() => undefined);
});
