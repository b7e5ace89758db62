import 'reflect-metadata';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { type INestApplication, VersioningType } from '@nestjs/common';
import type { BoardState } from '../../../lib/board/view/wire.js';
import { LockService } from '../../../lib/index.js';
import { until } from '../../scenarios/until.js';
import type { RedisServer } from '../../support/redis-server.js';
import { TestEnvironment } from '../../support/test-environment.js';
import { startBoard, type BoardAppOptions } from './board-app.js';
import { EventReader } from './events.js';

const environment = new TestEnvironment();
let server: RedisServer;
const apps: INestApplication[] = [];

beforeAll(async () => {
  server = await environment.server();
});
afterEach(async () => {
  await Promise.all(apps.splice(0).map((app) => app.close()));
  await server.client().flushall();
});
afterAll(() => environment.end());

async function start(options: Partial<BoardAppOptions> = {}) {
  const started = await startBoard({ locks: { connection: server.url, label: 'api-1' }, ...options });
  apps.push(started.app);
  return { ...started, locks: started.app.get(LockService) };
}

const HOSTILE = `<script>alert("1")</script>'"><img src=x onerror=alert(1)>&amp;\u2028{{7*7}}`;
const readState = async (url: string) => (await (await fetch(url)).json()) as BoardState;

describe.each(['express', 'fastify'] as const)('the board on %s', (platform) => {
  it('is a page that can be read without a script, with safe headers', async () => {
    const { url, locks } = await start({ platform });
    const lease = await locks.acquire('order:7');
    const response = await fetch(`${url}/locks`);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(response.headers.get('x-content-type-options')).toBe('nosniff');
    const policy = response.headers.get('content-security-policy');
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'");
    expect(policy).toContain("frame-ancestors 'self'");
    expect(policy).not.toContain('unsafe');
    const html = await response.text();
    expect(html).toMatch(/<a href="\?lock=order%3A7" title="order:7">order:7<\/a>/);
    expect(html).toContain('api-1');
    expect(html).not.toMatch(/ style=| on\w+=|<style|<script>/);
    const detail = await (await fetch(`${url}/locks?lock=order%3A7`)).text();
    expect(detail).toContain(lease.owner);
  });

  it('finds its files with a slash at the end and without, below any prefix', async () => {
    const { url } = await start({
      platform,
      board: { path: 'ops/locks' },
      prepare: (app) => {
        app.setGlobalPrefix('api');
        app.enableVersioning({ type: VersioningType.URI, defaultVersion: '1' });
      },
    });
    for (const page of [`${url}/api/ops/locks`, `${url}/api/ops/locks/`]) {
      const html = await (await fetch(page)).text();
      const files = [...html.matchAll(/(?:src|href)="(\.[^"]+)"/g)].map(([, file]) => new URL(file!, page));
      expect(files.map(({ pathname }) => pathname)).toEqual([
        '/api/ops/locks/board.css',
        '/api/ops/locks/board.js',
      ]);
      const answers = await Promise.all(files.map((file) => fetch(file)));
      expect(answers.map(({ status }) => status)).toEqual([200, 200]);
      expect(answers.map((answer) => answer.headers.get('content-type'))).toEqual([
        'text/css; charset=utf-8',
        'text/javascript; charset=utf-8',
      ]);
    }
    expect((await fetch(`${url}/api/ops/locks/nothing`)).status).toBe(404);
  });

  it('tells at once what changes, and only that', async () => {
    const { url, locks } = await start({ platform });
    const other = environment.service({ connection: server.url, label: 'api-2' });
    await locks.acquire('kept');
    const viewer = await EventReader.open(`${url}/locks/events`);
    expect(viewer.response.headers.get('content-type')).toContain('text/event-stream');
    expect(viewer.response.headers.get('cache-control')).toContain('no-transform');
    await until(() => viewer.states.length === 1);
    expect(viewer.states[0]?.locks.map(({ name }) => name)).toEqual(['kept']);

    const lease = await locks.getFairLock('order:7').acquire();
    const acquired = await viewer.next(({ set }) => set !== undefined);
    expect(acquired.set).toMatchObject([
      { name: 'order:7', kind: 'fair', token: lease.fencingToken, waiting: 0, holders: [{ label: 'api-1' }] },
    ]);
    expect(acquired.changes).toMatchObject([{ type: 'acquired', name: 'order:7', text: 'api-1' }]);
    const waiting = other.getFairLock('order:7').acquire();
    const waited = await viewer.next(({ set }) => set !== undefined);
    expect(waited.set).toMatchObject([{ name: 'order:7', waiting: 1, waitingSince: expect.any(Number) }]);
    await lease.release();
    const passed = await viewer.next(({ changes }) => changes !== undefined);
    expect(passed.changes).toMatchObject([
      { type: 'handed-on', name: 'order:7', text: expect.stringMatching(/^api-1 → /) },
      { type: 'waiting-over' },
    ]);
    await (await waiting).release();
    const gone = await viewer.next((update) => update.gone !== undefined);
    expect(gone.gone).toEqual(['order:7']);
    expect(gone.set).toBeUndefined();
    // What has not changed was never told again.
    const told = viewer.updates.flatMap(({ set = [] }) => set).map(({ name }) => name);
    expect(told).not.toContain('kept');
    await viewer.close();
  });

  it('writes the names of others as they are, and no more', async () => {
    const { url, locks } = await start({ platform });
    const other = environment.service({ connection: server.url, label: '<b>"api"</b>' });
    await locks.acquire(HOSTILE);
    await other.acquire('by other');
    for (const page of [`${url}/locks`, `${url}/locks?lock=${encodeURIComponent(HOSTILE)}`]) {
      const html = await (await fetch(page)).text();
      expect(html).toContain('&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&#39;&quot;&gt;&lt;img src=x');
      expect(html).not.toMatch(/<script>|<img|<b>"|onerror=alert\(1\)>[^&]*</);
    }
    const answer = await fetch(`${url}/locks/state`);
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
    const state = (await answer.json()) as BoardState;
    expect(state.locks.map(({ name }) => name).sort()).toEqual([HOSTILE, 'by other']);
    const viewer = await EventReader.open(`${url}/locks/events`);
    await until(() => viewer.states.length === 1);
    expect(viewer.states[0]?.locks.map(({ name }) => name).sort()).toEqual([HOSTILE, 'by other']);
    await viewer.close();
  });

  it('lets the application close while viewers are there', async () => {
    const { url, app } = await start({ platform });
    const viewers = await Promise.all([1, 2, 3].map(() => EventReader.open(`${url}/locks/events`)));
    await until(() => viewers.every(({ states }) => states.length === 1));
    await app.close();
    apps.splice(0);
    await until(() => viewers.every(({ ended }) => ended));
  });
});

it('looks at the store while the page is open somewhere, and leaves it alone otherwise', async () => {
  const { url } = await start();
  const monitor = await server.monitor();
  const scans = () => monitor.commands.filter(([name]) => name?.toLowerCase() === 'scan').length;
  const viewers = await Promise.all([1, 2, 3].map(() => EventReader.open(`${url}/locks/events`)));
  await until(() => scans() > 3);
  await Promise.all(viewers.map((viewer) => viewer.close()));
  await until(async () => {
    const before = scans();
    await new Promise((resolve) => setTimeout(resolve, 600));
    return scans() === before;
  });
  await monitor.stop();
});

it('says that the store is gone, and shows the locks again when it is back', async () => {
  const own = await environment.server();
  const { url, locks } = await start({ locks: { connection: own.url } });
  await locks.acquire('order:7');
  const viewer = await EventReader.open(`${url}/locks/events`);
  await until(() => viewer.states.length === 1);
  await own.kill();
  const { problem } = await viewer.next((update) => (update.problem ?? null) !== null);
  expect(problem?.message).not.toBe('');
  const state = await readState(`${url}/locks/state`);
  expect(state.locks.map(({ name }) => name)).toEqual(['order:7']);
  expect(await (await fetch(`${url}/locks`)).text()).toContain('The store does not answer');
  await own.restart();
  await viewer.next((update) => update.problem === null);
  await viewer.close();
});

it('shows as many locks as it may, and says whether there are more', async () => {
  const { url, locks } = await start({ board: { limit: 3 } });
  const acquire = (name: string) => locks.acquire(name);
  await Promise.all(['a', 'b', 'c'].map(acquire));
  const full = await readState(`${url}/locks/state`);
  expect([full.locks.length, full.more]).toEqual([3, false]);
  await Promise.all(['d', 'e'].map(acquire));
  await until(async () => (await readState(`${url}/locks/state`)).more);
  expect((await readState(`${url}/locks/state`)).locks).toHaveLength(3);
  expect(await (await fetch(`${url}/locks`)).text()).toContain('The first 3 locks. There are more.');
});

it('shows the elections that the application takes part in, with the leader and its term, until they end', async () => {
  const [leading, following] = [
    await start(),
    await start({ locks: { connection: server.url, label: 'api-2' } }),
  ];
  const stop = new AbortController();
  const electionOf = ({ locks }: { locks: LockService }) => locks.getElection('indexer');
  const wait = () =>
    new Promise<void>((resolve) => {
      stop.signal.addEventListener('abort', () => {
        resolve();
      });
    });
  const campaign = (app: { locks: LockService }) => electionOf(app).run(wait, { signal: stop.signal });
  const elections = async ({ url }: { url: string }) => (await readState(`${url}/locks/state`)).elections;
  expect(await elections(leading)).toEqual([]);
  const first = campaign(leading);
  await until(() => electionOf(leading).isLeader());
  const second = campaign(following);
  await until(async () => (await elections(following)).some(({ leader }) => leader?.label === 'api-1'));
  const leader = { label: 'api-1', term: (await electionOf(leading).leader())?.term };
  await until(async () => (await elections(leading)).length > 0);
  expect(await elections(leading)).toEqual([{ name: 'indexer', state: 'leading', leader }]);
  expect(await elections(following)).toEqual([{ name: 'indexer', state: 'follower', leader }]);
  expect(await (await fetch(`${leading.url}/locks`)).text()).toContain(`term ${String(leader.term)}`);
  stop.abort();
  await Promise.all([first, second]);
});

it('shows the instances that it is given, one at a time', async () => {
  const { url, app } = await start({
    locks: [
      { connection: server.url, label: 'api-1' },
      { connection: server.url, name: 'audit', keyPrefix: 'audit:', label: 'api-1' },
    ],
    board: { instances: ['default', 'audit'] },
  });
  await app.get(LockService).acquire('order:7');
  const html = await (await fetch(`${url}/locks?instance=audit`)).text();
  expect(html).toContain('aria-current="page">audit</a>');
  expect(html).not.toContain('order:7');
  expect((await readState(`${url}/locks/state?instance=default`)).locks).toHaveLength(1);
  expect((await readState(`${url}/locks/state?instance=audit`)).locks).toHaveLength(0);
  expect((await fetch(`${url}/locks/state?instance=other`)).status).toBe(404);
  await expect(start({ board: { instances: ['other'] } })).rejects.toThrow(/there is no such LockService/);
});
