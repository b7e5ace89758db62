import 'reflect-metadata';
import { describe, expect, it } from '@jest/globals';
import { VersioningType } from '@nestjs/common';
import type { BoardState } from '../../../../lib/board/feed/wire.js';
import { LockService, MemoryLockStore } from '../../../../lib/index.js';
import type { StoreListing } from '../../../../lib/store/index.js';
import { deferred } from '../../../doubles/deferred.js';
import { until } from '../../../scenarios/until.js';
import type { BoardAppOptions } from '../board-app.js';
import { BoardStage } from '../board-stage.js';
import { EventReader } from '../events.js';

const UNREACHABLE = /ECONN|[Cc]onnection|max retries per request/;

const stage = new BoardStage();
const { environment } = stage;
const start = (options?: Partial<BoardAppOptions>) => stage.start(options);

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
    const other = environment.service({ connection: stage.server.url, label: 'api-2' });
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
      { type: 'handed on', name: 'order:7', text: expect.stringMatching(/^api-1 → /) },
      { type: 'nothing waits' },
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
    const other = environment.service({ connection: stage.server.url, label: '<b>"api"</b>' });
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
});

it('looks at the store while the page is open somewhere, and leaves it alone otherwise', async () => {
  const { url } = await start();
  const monitor = await stage.server.monitor();
  const scans = () => monitor.commands.filter((command) => command.includes('lock:*')).length;
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
  // The board may see what happens before this test does.
  const away = viewer.next((update) => (update.problem ?? null) !== null);
  await own.kill();
  const { problem } = await away;
  // As ioredis says it: that depends on the step at which the connection ends.
  expect(problem?.message).toMatch(UNREACHABLE);
  expect(problem?.message).not.toContain('temporarily unavailable');
  const lock = (await (await fetch(`${url}/locks/lock?name=order:7`)).json()) as { message: string };
  expect(lock.message).toMatch(UNREACHABLE);
  expect(problem?.kind).toBe('failed');
  const state = await readState(`${url}/locks/state`);
  expect(state.locks.map(({ name }) => name)).toEqual(['order:7']);
  expect(await (await fetch(`${url}/locks`)).text()).toContain('The locks cannot be read');
  // The board may see the server before this test does.
  const back = viewer.next((update) => update.problem === null);
  await own.restart();
  await back;
  await viewer.close();
});

/** A store whose looks last until they may end. */
class SlowStore extends MemoryLockStore {
  gate = Promise.resolve();
  override readonly listing: StoreListing = {
    names: async () => {
      await this.gate;
      return { names: [{ name: 'order:7', isQueue: false }], cursor: undefined };
    },
  };
}

it('says that a look is slow while the store may still answer, and when it saw what it shows', async () => {
  const store = new SlowStore();
  const { url, locks } = await start({ locks: { store } });
  await locks.acquire('order:7');
  const viewer = await EventReader.open(`${url}/locks/events`);
  await until(() => viewer.states.length === 1);
  const { promise, resolve } = deferred();
  store.gate = promise;
  const { problem } = await viewer.next((update) => (update.problem ?? null) !== null);
  expect(problem).toMatchObject({ kind: 'slow', seen: expect.any(Number), message: '' });
  const html = await (await fetch(`${url}/locks`)).text();
  expect(html).toMatch(/<b>The store is slow<\/b>: the look that began at [\d:]+ is not over/);
  expect(html).toMatch(/What is shown was seen at [\d:]+ UTC\S*\. /);
  expect(html).toContain('order:7');
  resolve();
  await viewer.next((update) => update.problem === null);
  await viewer.close();
});

it('does not say that there is no lock before it has seen the store', async () => {
  const store = new SlowStore();
  const { promise, resolve } = deferred();
  store.gate = promise;
  const { url } = await start({ locks: { store } });
  const html = await (await fetch(`${url}/locks`)).text();
  expect(html).toContain('The store is slow');
  expect(html).toContain('Nothing has been seen yet.');
  expect(html).toContain('<p id="foot">Not known yet.</p>');
  expect(html).toContain('<p id="summary">Not known yet</p>');
  expect(html).not.toContain('No lock is held');
  resolve();
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

it('knows an election of other processes by its mark: a candidate is no caller that waits for long', async () => {
  const { url } = await start();
  const candidates = ['worker-1', 'worker-2'].map((label) =>
    environment.service({ connection: stage.server.url, label }),
  );
  const stop = new AbortController();
  const { promise: over, resolve } = deferred();
  stop.signal.addEventListener('abort', () => {
    resolve();
  });
  const runs = candidates.map((locks) =>
    locks.getElection('reports').run(() => over, { signal: stop.signal }),
  );
  const stuck = candidates[0]!;
  await stuck.acquire('order:7');
  const waiting = candidates[1]!.acquire('order:7', { waitTime: '1m' });
  const attention = async () => {
    const html = await (await fetch(`${url}/locks`)).text();
    return /<section id="attention".*?<\/section>/s.exec(html)?.[0] ?? '';
  };
  await until(async () => (await attention()).includes('1 caller waits for order:7'));
  expect(await attention()).not.toContain('reports');
  const { locks } = await readState(`${url}/locks/state`);
  expect(locks.find(({ name }) => name === 'reports')).toMatchObject({
    kind: 'election',
    waiters: [expect.stringMatching(/^worker-/)],
  });
  await stuck.forceRelease('order:7');
  await (await waiting).release();
  stop.abort();
  await Promise.all(runs);
});

it('shows the instances that it is given, one at a time', async () => {
  const { url, app } = await start({
    locks: [
      { connection: stage.server.url, label: 'api-1' },
      { connection: stage.server.url, name: 'audit', keyPrefix: 'audit:', label: 'api-1' },
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
