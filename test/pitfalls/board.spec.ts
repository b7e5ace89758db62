/**
 * A page for people in the process that holds the locks. The number is that of a list of verified defects of lock libraries; what is
 * tested is that ours does not have it. 1,000 viewers at once are a scenario of the benchmarks.
 *
 * 88  A page for people computes per viewer in the event loop that renews the leases.
 */
import 'reflect-metadata';
import { once } from 'node:events';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { feedOf } from '../nest/board/board-app.js';
import { BoardStage } from '../nest/board/board-stage.js';
import { EventReader } from '../nest/board/events.js';
import { ask, openSession, seen } from '../nest/board/http2-client.js';
import { until } from '../scenarios/until.js';

const stage = new BoardStage();

afterEach(() => {
  jest.restoreAllMocks();
  jest.useRealTimers();
});

describe('The board (pitfall 88)', () => {
  it('writes the state once for all viewers that come between two looks at the store', async () => {
    const { url, locks } = await stage.start({ locks: { store: 'memory' }, board: { interval: '1m' } });
    await locks.acquire('order:7');
    await (await fetch(`${url}/locks/state`)).text();
    const written = jest.spyOn(JSON, 'stringify');
    const viewers = await Promise.all(
      Array.from({ length: 50 }, () => EventReader.open(`${url}/locks/events`)),
    );
    await until(() => viewers.every(({ states }) => states[0]?.locks[0]?.name === 'order:7'));
    const states = Array.from({ length: 50 }, async () => (await fetch(`${url}/locks/state`)).text());
    expect(new Set(await Promise.all(states)).size).toBeLessThan(10);
    const whole = written.mock.calls.filter(
      ([value]) => typeof value === 'object' && 'locks' in (value ?? {}),
    );
    // A few more on a machine so slow that a beat comes between.
    expect(whole.length).toBeLessThan(10);
    await Promise.all(viewers.map((viewer) => viewer.close()));
  });

  it('tells the time to a viewer that gets a state of some time ago', async () => {
    const { url } = await stage.start({ locks: { store: 'memory' }, board: { interval: '1m' } });
    const { at } = (await (await fetch(`${url}/locks/state`)).json()) as { at: number };
    await until(() => Date.now() > at);
    const viewer = await EventReader.open(`${url}/locks/events`);
    await until(() => viewer.updates.length > 0);
    expect(viewer.updates[0]?.at).toBeGreaterThan(at);
    await viewer.close();
  });

  it('drops a viewer that reads nothing for half a minute', async () => {
    const { app, url, locks } = await stage.start({
      locks: { store: 'memory', leaseTime: '1h' },
      platform: 'http2',
    });
    const feed = feedOf(app);
    // More than a connection takes that is not read.
    const names = Array.from({ length: 500 }, (_, n) => `order:${String(n)}`);
    await Promise.all(names.map((name) => locks.acquire(name)));
    const session = await openSession(url, 0);
    stage.afterwards(() => {
      session.destroy();
    });
    jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask'] });
    const events = ask(session, '/locks/events');
    await once(events, 'response');
    // By then it has been written to, and takes no more.
    await seen(session);
    jest.advanceTimersByTime(25_000);
    expect(feed.watched).toBe(1);
    jest.advanceTimersByTime(15_000);
    jest.useRealTimers();
    await until(() => feed.watched === 0);
  });
});
