import 'reflect-metadata';
import { once } from 'node:events';
import type { ClientHttp2Session } from 'node:http2';
import { describe, expect, it } from '@jest/globals';
import { MemoryLockStore } from '../../../../lib/index.js';
import { until } from '../../../scenarios/until.js';
import { feedOf } from '../board-app.js';
import { BoardStage } from '../board-stage.js';
import { ask, openSession } from '../http2-client.js';

const stage = new BoardStage();
const EVENTS = '/locks/events';

async function start(platform: 'http2' | 'https2', locks = 0) {
  const started = await stage.start({ platform, locks: { store: new MemoryLockStore() } });
  const names = Array.from({ length: locks }, (_, n) => `order:${String(n)}`);
  const leases = await Promise.all(names.map((name) => started.locks.acquire(name)));
  const feed = feedOf(started.app);
  const close = async () => {
    await Promise.all(leases.map((lease) => lease.release()));
    await stage.close();
  };
  return { ...started, feed, close };
}

async function open(url: string, window?: number): Promise<ClientHttp2Session> {
  const session = await openSession(url, window);
  stage.afterwards(() => {
    session.destroy();
  });
  return session;
}

describe.each(['http2', 'https2'] as const)('the board of Fastify with %s', (platform) => {
  it('is a page, and tells what changes', async () => {
    const { url, locks } = await start(platform);
    const session = await open(url);
    const page = ask(session, '/locks').setEncoding('utf8');
    let html = '';
    for await (const part of page) html += String(part);
    expect(html).toContain('No lock is held or waited for.');
    const events = ask(session, EVENTS).setEncoding('utf8');
    let told = '';
    events.on('data', (part: string) => (told += part));
    await until(() => told.includes('event: state'));
    await locks.acquire('order:7');
    await until(() => told.includes('"acquired"'));
  });

  it.each([
    ['that takes all events', undefined, 1],
    ['that reads nothing', 0, 1],
    ['that reads too little of many locks', 1_000, 500],
  ])('lets the application close while there is a viewer %s', async (_, window, locks) => {
    const { url, feed, close } = await start(platform, locks);
    const session = await open(url, window);
    const events = ask(session, EVENTS);
    if (window === undefined) events.resume();
    await once(events, 'response');
    await until(() => feed.watched === 1);
    await close();
  });
});
