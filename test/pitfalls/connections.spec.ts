/**
 * Connections. The number is that of a list of verified defects of other lock libraries; what is tested is that ours
 * does not have it.
 *
 * 59  A refused SELECT leaves the connection on database 0: locks of two databases under one name.
 * 64  Health is `up` while no lock can be taken: scripts forbidden, replicas missing, a wrong password.
 * 84  A host that is undefined or empty is localhost: each pod has a Redis, and locks, of its own.
 * 85  A derived connection keeps the credentials of its first day; rotation starves its process without a word.
 * 86  An idle connection that a firewall dropped: the socket's timeout equals the caller's wait, so the first call fails.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import {
  type Lease,
  type LockEvent,
  LockModule,
  type LockModuleOptions,
  type LockService,
} from '../../lib/index.js';
import { first } from '../support/tier.js';
import { Stage, until } from './stage.js';

const stage = Stage.set();

it('takes no lock where SELECT is refused, instead of one in database 0 (pitfall 59)', async () => {
  await stage.redis.call('ACL', 'SETUSER', 'app', 'on', '>word', '~*', '&*', '+@all', '-select');
  const locks = stage.service({ connection: `${stage.server.url.replace('//', '//app:word@')}/1` });
  await expect(locks.acquire('order:7')).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE', permanent: true });
  expect(await stage.redis.dbsize()).toBe(0);
});

it.each([
  ['scripts are forbidden', ['-evalsha', '-eval'], ''],
  ['a command of theirs is forbidden', ['-hset'], ''],
  ['the password is wrong', [], 'wrong-'],
])('is down, with the reason, where %s (pitfall 64)', async (_, rules, prefix) => {
  await stage.redis.call('ACL', 'SETUSER', 'app', 'reset', 'on', '>word', '~*', '&*', '+@all', ...rules);
  const url = stage.server.url.replace('//', `//app:${prefix}word@`);
  const { status, nodes } = await stage.service({ connection: url }).health();
  expect([status, nodes[0]?.error]).toEqual([
    'down',
    expect.stringMatching(/NOPERM|executing the script|ACL failure|WRONGPASS/),
  ]);
});

it.each<[string, string | object]>([
  ['connection', 'redis:///3'],
  ['connection.host', { host: undefined, port: 6_379 }],
  ['connection.host', { host: '' }],
  ['connection.sentinels[0].host', { name: 'm', sentinels: [{ host: undefined, port: 26_379 }] }],
  ['connection.name', { name: undefined, sentinels: [{ host: 'a', port: 26_379 }] }],
  ['connection.name', { name: 'm' }],
  ['connection.cluster[0].host', { cluster: [{ host: '', port: 7_000 }] }],
])('is refused at boot: a place without a value, %s (pitfall 84)', (option, connection) => {
  expect(() => LockModule.forRoot({ connection })).toThrow(
    expect.objectContaining({ code: 'LOCK_CONFIG', option }),
  );
});

describe("Credentials that rotate on the application's client (pitfall 85)", () => {
  /** As of IAM: the application has set the next password on its client, and the server ends old connections. */
  const rotate = async (client: Redis, given: string) => {
    await stage.redis.acl('SETUSER', 'app', 'resetpass', '>next');
    client.options.password = given;
    await stage.redis.call('CLIENT', 'KILL', 'USER', 'app');
  };

  const rotating = async () => {
    await stage.redis.call('ACL', 'SETUSER', 'app', 'reset', 'on', '>first', '~*', '&*', '+@all');
    const client = stage.client(stage.server.url.replace('//', '//app:first@'));
    const events: LockEvent[] = [];
    const locks = stage.service({ connection: client });
    locks.events$.subscribe((event) => events.push(event));
    await stage.hearing(locks);
    return { client, locks, events };
  };

  it('are taken over by the connection for messages', async () => {
    const { client, locks } = await rotating();
    await rotate(client, 'next');
    await until(async () => (await locks.health()).nodes[0]?.subscriber === true);
    const holder = stage.service();
    const held = await holder.acquire('order:2');
    const waiting = locks.acquire('order:2');
    await until(async () => (await stage.waiting('order:2')) > 0);
    await held.release();
    await (await waiting).release();
  });

  it('and that are refused are told once, with the reason, and again when they are right', async () => {
    const { client, locks, events } = await rotating();
    // The client is let in by another user, the connection for messages is not.
    await stage.redis.acl('SETUSER', 'app', 'resetpass', '>next');
    await client.auth('app', 'next');
    await stage.redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    const told = () => events.filter(({ type }) => type === 'disconnected' || type === 'reconnected');
    await until(() => told().length > 0);
    await until(async () => (await locks.health()).nodes[0]?.error?.includes('WRONGPASS') === true);
    const node = `the messages of 127.0.0.1:${String(stage.server.port)}`;
    expect(told()).toEqual([
      { type: 'disconnected', node, error: expect.objectContaining({ name: 'NotAdmitted' }) },
    ]);
    expect(await locks.health()).toMatchObject({
      status: 'degraded',
      nodes: [{ error: expect.stringMatching(/do not come through, so waiters poll: .*WRONGPASS/) }],
    });
    client.options.password = 'next';
    await until(() => told().length > 1);
    expect(told()[1]).toMatchObject({ type: 'reconnected', node });
    await until(async () => (await locks.health()).status === 'up');
  });
});

it('is told once if it leads to a replica, however often it is made again, and once when that is a master', async () => {
  const locks = stage.service();
  await (await locks.acquire('warm')).release();
  const told: string[] = [];
  locks.events$.subscribe(({ type }) => {
    if (type === 'disconnected' || type === 'reconnected') told.push(type);
  });
  const connectionsMade = async () =>
    Number(/total_connections_received:(\d+)/.exec(await stage.redis.info('stats'))?.[1]);
  const before = await connectionsMade();
  await stage.redis.replicaof('127.0.0.1', '1');
  await until(async () => {
    await locks.tryAcquire('order:7').catch(() => undefined);
    // A replica answers scripts that only read.
    await locks.inspect('order:7').catch(() => undefined);
    return (await connectionsMade()) > before + 2;
  });
  expect(told).toEqual(['disconnected']);
  await stage.redis.replicaof('NO', 'ONE');
  await (await locks.acquire('order:7')).release();
  expect(told).toEqual(['disconnected', 'reconnected']);
});

describe('An idle connection that was dropped without a word (pitfall 86)', () => {
  const idle = async (options: Partial<LockModuleOptions> = {}) => {
    const proxy = await stage.proxy();
    const locks = stage.service({ connection: proxy.url, ...options });
    await (await locks.acquire('warm')).release();
    await sleep(500);
    proxy.forgetConnections();
    return locks;
  };

  it.each<[string, (locks: LockService) => Promise<unknown>, unknown]>([
    ['health', async (locks) => (await locks.health()).status, 'up'],
    ['inspect', (locks) => locks.inspect('warm'), null],
    ['list', (locks) => locks.list(), { locks: [], cursor: null }],
    ['forceRelease', (locks) => locks.forceRelease('warm'), false],
    [
      'once, without waiting',
      (locks) => locks.once('job', { period: 1, waitTime: 0 }, () => 7),
      { ran: true, value: 7 },
    ],
  ])('is replaced under the first question: %s', async (_, ask, answer) => {
    expect(await ask(await idle())).toEqual(answer);
  });

  it.each<[string, (locks: LockService) => Promise<Lease | null>]>([
    ['acquire', (locks) => locks.acquire('order:7')],
    ['tryAcquire', (locks) => locks.tryAcquire('order:7')],
    ['of a fair lock', (locks) => locks.getFairLock('order:7').acquire()],
    ['of several locks', (locks) => locks.acquire(['order:7', 'order:8'])],
  ])('is replaced under the first call: %s', async (_, call) => {
    const lease = await call(await idle());
    expect(lease?.held).toBe(true);
    await lease?.release();
    expect(await stage.redis.keys('lock:order:?')).toEqual([]);
  });

  it('is replaced while a release passes the lock on to the next caller: it is no failed release', async () => {
    const proxy = await stage.proxy();
    const locks = stage.service({ connection: proxy.url, localHandoff: 0 });
    const told: string[] = [];
    locks.events$.subscribe(({ type }) => told.push(type));
    const lease = await locks.acquire('order:7');
    const waiting = locks.acquire('order:7');
    // The process receives messages, and then takes its next turn with the release.
    await until(async () => (await locks.health()).nodes[0]?.subscriber === true);
    await sleep(500);
    proxy.forgetConnections();
    await lease.release();
    await (await waiting).release();
    expect(told).toContain('disconnected');
    expect(told).not.toContain('release-failed');
  });

  it('is replaced while a lease is extended beyond the longest one of a quorum: each node is asked again', async () => {
    const servers = [stage.server, await stage.secondServer(), await stage.secondServer()];
    const ways = await Promise.all(servers.map(({ port }) => stage.proxy(port)));
    const locks = stage.service({ nodes: ways.map(({ url }) => url) });
    const lease = await locks.acquire('order:7');
    await sleep(500);
    for (const way of ways) way.forgetConnections();
    await lease.extend(60_000);
    expect(lease.remainingTime()).toBeGreaterThan(30_000);
    await lease.release();
  });

  const nonWaiting: [string, (locks: LockService, n: number) => Promise<unknown>][] = [
    ['tryAcquire', async (locks, n) => (await locks.tryAcquire(`order:${String(n)}`))?.held],
    ['isLocked', async (locks) => !(await locks.getLock('order').isLocked())],
  ];

  it.each(
    first(
      2,
      nonWaiting.flatMap(([name, call]) => [
        [name, 'a server', 1, call] as const,
        [name, 'a quorum', 3, call] as const,
      ]),
    ),
  )('fails no call while it is replaced: %s on %s', async (_, __, count, call) => {
    const servers = [stage.server];
    while (servers.length < count) servers.push(await stage.secondServer());
    const ways = await Promise.all(servers.map(({ port }) => stage.proxy(port)));
    const urls = ways.map(({ url }) => url);
    const locks = stage.service(count === 1 ? { connection: urls[0]! } : { nodes: urls });
    const back = new Set<string>();
    locks.events$.subscribe((event) => event.type === 'reconnected' && back.add(event.node));
    await (await locks.acquire('warm')).release();
    await sleep(500);
    for (const way of ways) way.forgetConnections();
    const answers: Promise<unknown>[] = [];
    await until(() => {
      answers.push(call(locks, answers.length));
      return back.size === count;
    });
    expect(new Set(await Promise.all(answers))).toEqual(new Set([true]));
  });
});

it('for messages that leads to another server than that of the commands is told, and made again until both lead to one', async () => {
  const next = await stage.secondServer();
  const [way, wayOfMessages] = [await stage.proxy(), await stage.proxy()];
  const client = stage.client(way.url);
  await client.ping();
  client.options.port = wayOfMessages.port;
  const locks = stage.service({ connection: client });
  await stage.hearing(locks);
  client.options.port = way.port;
  await stage.service().acquire('order:7');
  const held = await stage.service({ connection: next.url }).acquire('order:7');
  const waiting = locks.acquire('order:7', { waitTime: Infinity });
  await until(async () => (await stage.waiting('order:7')) > 0);
  // The name has moved, and the former address is still remembered for the connection for messages.
  way.leadTo(next.port);
  way.cut();
  const reason = 'their connection leads to another server than that of the commands';
  await until(async () => (await locks.health()).nodes[0]?.error?.includes(reason) === true);
  wayOfMessages.leadTo(next.port);
  await until(async () => (await locks.health()).status === 'up');
  await held.release();
  await (await waiting).release();
});
