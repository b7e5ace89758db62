import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { LockLostError, type LockEvent, type LockService } from '../../../lib/index.js';
import type { RedisServer } from '../../support/redis-server.js';
import type { HoldRecord, Worker } from '../../support/worker.js';
import { TestEnvironment } from '../../support/test-environment.js';
import { now } from '../history.js';
import { until } from '../until.js';
import { fenceOf } from '../../support/keys.js';

interface Held {
  id: number;
  owner: string;
}

describe('The holder of a lock', () => {
  const environment = new TestEnvironment();
  let server: RedisServer;
  let a: LockService;
  let b: Worker;
  let events: LockEvent[];

  beforeAll(async () => {
    server = await environment.server();
    a = environment.service({ connection: server.url });
    events = [];
    a.events$.subscribe((event) => events.push(event));
    b = await environment.worker({ url: server.url });
  });

  afterAll(() => environment.end());

  /** What the channel of a lock carries from now on. */
  async function messages(name: string): Promise<{ heard: string[]; stop(): Promise<void> }> {
    const heard: string[] = [];
    const listener = server.client().duplicate();
    listener.on('message', (_, message) => heard.push(message));
    await listener.subscribe(`redisson_lock__channel:{lock:${name}}`);
    // Messages come in order, so once this one is here, all that were sent before it are.
    const stop = async () => {
      await server.client().publish(`redisson_lock__channel:{lock:${name}}`, 'end');
      await until(() => heard.at(-1) === 'end');
      heard.pop();
      listener.disconnect();
    };
    return { heard, stop };
  }

  it('is killed: the next gets it when the lease is over, and not before', async () => {
    const leaseTime = 2_000;
    const victim = await environment.worker({ url: server.url, service: { leaseTime } });
    await victim.call('acquire', 'killed');
    const waiting = b.call<HoldRecord>('holdFor', 'killed', {}, 0);
    await until(async () => (await a.inspect('killed'))?.waiters.processes === 1);
    await victim.kill();
    const [killed, left, looked] = [now(), await server.client().pttl('lock:killed'), now()];
    const { granted } = await waiting;
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThanOrEqual(leaseTime);
    expect(granted).toBeGreaterThan(killed + left - 2);
    expect(granted).toBeLessThan(looked + left + leaseTime);
  });

  it('never releases it while its process lives: it is still locked after three leases', async () => {
    const leaseTime = 1_500;
    const keeper = await environment.worker({ url: server.url, service: { leaseTime } });
    const { id, owner } = await keeper.call<Held>('acquire', 'kept');
    expect(await b.call('tryAcquire', 'kept', { waitTime: 3 * leaseTime })).toBeNull();
    expect(await server.client().hgetall('lock:kept')).toEqual({ [owner]: '1' });
    expect(await keeper.call('state', id)).toMatchObject({ held: true, aborted: false });
    await keeper.stop();
    expect(await server.client().exists('lock:kept')).toBe(0);
  });

  it('works three times longer than its lease: the second enters, and the first is told and harms no other', async () => {
    const lease = await a.acquire('overrun', { leaseTime: 500 });
    const promisedUntil = now() + lease.remainingTime();
    const workEnds = now() + 1_500;
    const { signal } = lease;
    const second = await b.call<Held>('acquire', 'overrun');
    expect(now()).toBeGreaterThan(promisedUntil);

    expect(signal.aborted).toBe(true);
    expect(signal.reason).toBeInstanceOf(LockLostError);
    expect(signal.reason).toMatchObject({ key: 'overrun', reason: 'expired', owner: lease.owner });
    expect(lease.held).toBe(false);
    expect(lease.remainingTime()).toBe(0);
    expect(() => {
      lease.assertHeld();
    }).toThrow(LockLostError);
    expect(events).toContainEqual({
      type: 'lost',
      name: 'overrun',
      label: 'lock',
      owner: lease.owner,
      reason: 'expired',
    });

    await sleep(Math.max(0, workEnds - now()));
    const channel = await messages('overrun');
    await lease.release();
    await channel.stop();
    expect(channel.heard).toEqual([]);
    expect(await server.client().hgetall('lock:overrun')).toEqual({ [second.owner]: '1' });
    expect(await b.call('state', second.id)).toMatchObject({ held: true, aborted: false });
    await b.call('release', second.id);
  });

  it('is another one by now: a release by the former changes nothing and wakes no waiter', async () => {
    const former = await a.acquire('taken-over');
    await b.call('forceRelease', 'taken-over');
    const present = await b.call<Held>('acquire', 'taken-over', { leaseTime: 60_000 });
    const fence = await server.client().get(fenceOf('lock:taken-over'));
    // The watchdog has not looked yet, so this release does reach the server.
    expect(former.held).toBe(true);
    const channel = await messages('taken-over');
    await former.release();
    await channel.stop();
    expect(channel.heard).toEqual([]);
    expect(former.signal.reason).toMatchObject({ reason: 'taken', owner: former.owner });
    const { owner } = former;
    expect(events).toContainEqual({
      type: 'lost',
      name: 'taken-over',
      label: 'lock',
      owner,
      reason: 'taken',
    });
    expect(await server.client().hgetall('lock:taken-over')).toEqual({ [present.owner]: '1' });
    expect(await server.client().pttl('lock:taken-over')).toBeGreaterThan(30_000);
    expect(await server.client().get(fenceOf('lock:taken-over'))).toBe(fence);
    await b.call('release', present.id);
    expect(await server.client().exists('lock:taken-over')).toBe(0);
  });
});
