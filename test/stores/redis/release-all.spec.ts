import { beforeEach, describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import type { LockEvent, LockService } from '../../../lib/index.js';
import { keysBeside } from '../../support/keys.js';
import * as scripts from '../../support/scripts.js';
import { createLeastUser } from '../../support/acl.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { TestEnvironment } from '../../support/test-environment.js';
import { until } from '../../scenarios/until.js';
import { serverOfEach } from '../../support/test-servers.js';

const names = (count: number) => Array.from({ length: count }, (_, n) => `name:${String(n)}`);

describe('The locks of a multi-lock, given up together', () => {
  const environment = TestEnvironment.ofEach();
  const server = serverOfEach();
  let redis: Redis;
  let locks: LockService;

  beforeEach(async () => {
    redis = server.client();
    locks = environment.service({ connection: server.url, keyPrefix: '' });
    await (await locks.acquire(['warm', 'up'])).release();
  });

  const told = (service = locks) => {
    const events: LockEvent[] = [];
    service.events$.subscribe((event) => events.push(event));
    return events;
  };
  const scriptCalls = async () => {
    const { evalsha = 0, eval: whole = 0 } = await server.commandCalls();
    return evalsha + whole;
  };
  const ofType = (events: readonly LockEvent[], type: LockEvent['type']) =>
    events.flatMap((event) => (event.type === type && 'name' in event ? [event.name] : []));

  it.each([2, 10, 50, 200])('take one command, and so does their acquisition: %d names', async (count) => {
    const before = await scriptCalls();
    const lease = await locks.acquire(names(count));
    const taken = await scriptCalls();
    await lease.release();
    expect([taken - before, (await scriptCalls()) - taken]).toEqual([1, 1]);
    expect(await redis.exists(...names(count))).toBe(0);
    expect(locks.leases()).toEqual([]);
  });

  it('each have their own answer: one taken by another owner, one deleted, one in use by the application', async () => {
    const events = told();
    const lease = await locks.acquire(names(5));
    await redis.del('name:1', 'name:2', 'name:3');
    await redis.hset('name:1', 'other:1', 1);
    await redis.pexpire('name:1', 30_000);
    await redis.set('name:3', 'of the application');
    await lease.release();
    expect(ofType(events, 'released')).toEqual(['name:0', 'name:4']);
    expect(events.flatMap((event) => (event.type === 'lost' ? [[event.name, event.reason]] : []))).toEqual([
      ['name:1', 'taken'],
      ['name:2', 'deleted'],
      ['name:3', 'taken'],
    ]);
    expect(await redis.hgetall('name:1')).toEqual({ 'other:1': '1' });
    expect(await redis.get('name:3')).toBe('of the application');
    expect(await redis.exists('name:0', 'name:4')).toBe(0);
  });

  it('go to their waiters with that command', async () => {
    const other = environment.service({ connection: server.url, keyPrefix: '' });
    const lease = await locks.acquire(names(4));
    const waiting = ['name:1', 'name:3'].map((name) => other.acquire(name));
    await until(async () => (await locks.inspect('name:3'))?.waiters.processes === 1);
    await until(async () => (await locks.inspect('name:1'))?.waiters.processes === 1);
    await lease.release();
    // Handed over in the step of the release, so no moment is free.
    expect(await redis.exists('name:0', 'name:1', 'name:2', 'name:3')).toBe(2);
    for (const held of await Promise.all(waiting)) await held.release();
  });

  it('are announced on the channels that Redisson listens to', async () => {
    const odd = ['plain', 'a{b}c', '{open', 'clo}se', 'wörter', '{}empty'];
    const channels = odd.map((name) => keysBeside(name).channel);
    const subscriber = environment.client(redis.duplicate());
    const heard: string[] = [];
    subscriber.on('message', (channel: string, message: string) => heard.push(`${channel} ${message}`));
    await subscriber.subscribe(...channels);
    await (await locks.acquire(odd)).release();
    await until(() => heard.length === odd.length);
    expect(heard.sort()).toEqual(channels.map((channel) => `${channel} 0`).sort());
  });

  it('are given up with a caller of the same process that waits for one of them', async () => {
    const lease = await locks.acquire(names(3));
    const waiting = locks.acquire('name:1');
    await lease.release();
    const next = await waiting;
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
    expect(await redis.exists(...names(3))).toBe(1);
    await next.release();
    expect(await redis.exists(...names(3))).toBe(0);
  });

  it('are given up one by one by a user that may not teach the server the script for all of them', async () => {
    const { username, password } = await createLeastUser(redis, 'limited', ['~*', '&*', '+@all', '-eval']);
    const limited = environment.service({
      connection: { port: server.port, username, password },
      keyPrefix: '',
    });
    await redis.script('FLUSH');
    for (const { source } of [scripts.acquireAll, scripts.release]) await redis.script('LOAD', source);
    const lease = await limited.acquire(names(3));
    const events = told(limited);
    await lease.release();
    expect(await redis.exists(...names(3))).toBe(0);
    expect(ofType(events, 'released')).toEqual(names(3));
    expect(ofType(events, 'release-failed')).toEqual([]);
  });

  it('show the connection that its server has become a replica', async () => {
    const master = await environment.server();
    const proxy = await TcpProxy.start(server.port);
    environment.add(() => proxy.stop());
    const far = environment.service({ connection: proxy.url, keyPrefix: '' });
    const events = told(far);
    const lease = await far.acquire(names(3));
    await redis.replicaof('127.0.0.1', master.port);
    await lease.release();
    // The repeated releases would show it as well, so they get no answer. Timeouts end the connection after 10 s.
    proxy.dropRequests(true);
    await until(() => events.some(({ type }) => type === 'disconnected'));
  });
});
