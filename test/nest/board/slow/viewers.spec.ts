import 'reflect-metadata';
import { Agent, get, type Server } from 'node:http';
import { connect } from 'node:http2';
import { describe, expect, it } from '@jest/globals';
import type { INestApplication } from '@nestjs/common';
import { LockService } from '../../../../lib/index.js';
import { answered, nextRequest } from '../../../support/requests.js';
import { until } from '../../../scenarios/until.js';
import { EventReader } from '../events.js';
import { feedOf, startBoard } from '../board-app.js';
import { serverOfAll } from '../../../support/test-servers.js';

const guard = { canActivate: () => true };

it.each([
  ['without a guard, in production', 'production', {}, undefined, ['unguarded-board']],
  ['with a guard of its own', 'production', { guards: [guard] }, undefined, []],
  ['with a guard of the application', 'production', {}, guard, []],
  ['without a guard, elsewhere', 'test', {}, undefined, []],
])('a board %s: warnings at boot', async (_, environmentName, board, global, codes) => {
  const before = process.env.NODE_ENV;
  process.env.NODE_ENV = environmentName;
  try {
    const warned: unknown[] = [];
    const prepare = (app: INestApplication) => {
      app.get(LockService).events$.subscribe((event) => {
        if (event.type === 'warning') warned.push(event.code);
      });
      if (global !== undefined) app.useGlobalGuards(global);
    };
    const { app } = await startBoard({ locks: { store: 'memory' }, board, prepare });
    expect(warned).toEqual(codes);
    await app.close();
  } finally {
    process.env.NODE_ENV = before;
  }
});

const server = serverOfAll();

describe.each(['express', 'fastify'] as const)('on %s', (platform) => {
  it('a viewer that goes before the store has answered is none', async () => {
    const { app, url } = await startBoard({ locks: { connection: server.url }, platform });
    const feed = feedOf(app);
    await fetch(`${url}/locks/state`);
    await new Promise((resolve) => setTimeout(resolve, 300));
    server.freeze();
    const http = app.getHttpServer() as Server;
    const asked = new Promise((resolve) => http.once('request', resolve));
    const request = get(`${url}/locks/events`).on('error', () => undefined);
    await asked;
    request.destroy();
    await new Promise((resolve) => setTimeout(resolve, 100));
    server.thaw();
    await feed.state();
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(feed.watched).toBe(0);
    await app.close();
  });

  it.each(['events', 'lock?name=a'])(
    'closes while a page asks for %s over the connection that it has',
    async (path) => {
      const { app, url } = await startBoard({ locks: { connection: server.url }, platform });
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      const ask = () => answered(`${url}/locks/${path}`, agent);
      server.freeze();
      const asked = nextRequest(app.getHttpServer());
      const first = ask();
      await asked;
      const outcome = { closed: false };
      const closing = app.close().then(() => {
        outcome.closed = true;
      });
      await new Promise((resolve) => setTimeout(resolve, 100));
      server.thaw();
      await first;
      for (let n = 0; n < 20 && !outcome.closed; n++) {
        await ask().catch(() => undefined);
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      expect(outcome.closed).toBe(true);
      agent.destroy();
      await closing;
    },
  );

  it.each(['', '/state'])(
    'closes although a page that asked for locks%s before keeps its connection',
    async (path) => {
      const { app, url } = await startBoard({ locks: { connection: server.url }, platform });
      const agent = new Agent({ keepAlive: true });
      server.freeze();
      const asked = nextRequest(app.getHttpServer());
      const answer = answered(`${url}/locks${path}`, agent);
      await asked;
      // Node closes no connection by itself, however long that is not used.
      (app.getHttpServer() as Server).keepAliveTimeout = 0;
      const closing = app.close();
      await new Promise((resolve) => setTimeout(resolve, 100));
      server.thaw();
      await answer;
      await closing;
      agent.destroy();
    },
  );

  it('refuses viewers beyond maxViewers, and serves another one when one has gone', async () => {
    const board = { maxViewers: 2, instances: ['default', 'audit'] };
    const locks = [{ store: 'memory' as const }, { store: 'memory' as const, name: 'audit' }];
    const { app, url } = await startBoard({ locks, board, platform });
    const open = (instance = 'default') => EventReader.open(`${url}/locks/events?instance=${instance}`);
    const served = [await open(), await open('audit')];
    const refused = await fetch(`${url}/locks/events`);
    expect(refused.status).toBe(503);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(10);
    expect(await refused.json()).toEqual({
      message: 'The board has as many viewers as it may have: 2 (maxViewers); try again later',
    });
    expect((await fetch(`${url}/locks`)).status).toBe(200);
    await served[0]?.close();
    await until(async () => {
      const viewer = await open();
      await viewer.close();
      return viewer.response.status === 200;
    });
    await served[1]?.close();
    await app.close();
  });

  it('only the path with one slash at the end is the page, and only files of this version are kept', async () => {
    const { app, url } = await startBoard({ locks: { store: 'memory' }, platform });
    const statusOf = async (path: string) => (await fetch(`${url}${path}`)).status;
    expect(await statusOf('/locks/?lock=a')).toBe(200);
    expect(await statusOf('/locks/nothing/')).toBe(404);
    expect(await statusOf(`/locks/lock?name=${'a'.repeat(1_025)}`)).toBe(400);
    const html = await (await fetch(`${url}/locks`)).text();
    const [, version = ''] = /board\.js\?v=([^"]+)"/.exec(html) ?? [];
    const cachingOf = async (query: string) =>
      (await fetch(`${url}/locks/board.js${query}`)).headers.get('cache-control');
    expect(await cachingOf(`?v=${version}`)).toContain('immutable');
    expect(await cachingOf('?v=older')).toBe('no-store');
    await app.close();
  });
});

it('closes on HTTP/2 although a page that was under way keeps its connection', async () => {
  const { app, url } = await startBoard({ locks: { connection: server.url }, platform: 'http2' });
  server.freeze();
  const client = connect(url);
  const asked = nextRequest(app.getHttpServer());
  client.request({ ':path': '/locks' }).resume();
  await asked;
  const closing = app.close();
  await new Promise((resolve) => setTimeout(resolve, 100));
  server.thaw();
  await closing;
  client.destroy();
});
