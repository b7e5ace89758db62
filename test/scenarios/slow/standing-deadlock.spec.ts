import 'reflect-metadata';
import { expect, it } from '@jest/globals';
import type { BoardState } from '../../../lib/board/feed/wire.js';
import { call } from '../../cli/command-line.js';
import { until } from '../until.js';
import { TestEnvironment } from '../../support/test-environment.js';
import { startBoard } from '../../nest/board/board-app.js';

const environment = TestEnvironment.ofAll();

it('A deadlock that two processes only report is shown by the board of a third one, and by doctor', async () => {
  const server = await environment.server();
  const worker = (label: string) =>
    environment.worker({ url: server.url, service: { label, deadlock: 'report', lockOrder: 'off' } });
  const [one, two] = await Promise.all([worker('one'), worker('two')]);
  const nest = (process: typeof one, first: string, second: string) =>
    process.call<{ message?: string }>('nest', { name: first }, { name: second, waitTime: 120_000 }, 2_000);
  // Each holds its first lock when the other one asks for it.
  const over = Promise.all([nest(one, 'a', 'b'), nest(two, 'b', 'a')]);
  const { app, url } = await startBoard({ locks: { connection: server.url, label: 'third' } });
  environment.add(() => app.close());
  const viewer = new AbortController();
  const events = fetch(`${url}/locks/events`, { signal: viewer.signal });
  const stateOf = async () => (await (await fetch(`${url}/locks/state`)).json()) as BoardState;
  await until(async () => (await stateOf()).deadlocks.length > 0);
  const [{ cycle } = { cycle: [] }] = (await stateOf()).deadlocks;
  expect(cycle.map(({ process, name }) => `${process} ${name}`).sort()).toEqual(['one b', 'two a']);
  const { code, stdout } = await call(['doctor', '--json', '--timeout', '60s', '--url', server.url]);
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
  // The process that waits for it goes on, and then the other one.
  await one.call('forceRelease', 'a');
  expect((await over).map(({ message }) => message)).toEqual([undefined, undefined]);
  await until(async () => (await stateOf()).deadlocks.length === 0);
  viewer.abort();
  await events.catch(() => undefined);
});
