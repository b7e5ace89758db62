import { beforeAll, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { Lease, LockService } from '../../../../lib/index.js';
import * as scripts from '../../../support/scripts.js';
import { TestEnvironment } from '../../../support/test-environment.js';
import { until } from '../../../scenarios/until.js';
import { TcpProxy } from '../../../support/tcp-proxy.js';
import { lockKeys } from '../../../support/keys.js';
import { serverOfAll } from '../../../support/test-servers.js';

/** ms: longer than any call waits, so a caller that gets a lock has not waited for a lease to run out. */
const LEASE = 300_000;
/** All positions in a reply, and its end. */
const positionsOf = (reply: string) => Array.from({ length: reply.length + 1 }, (_, position) => position);

const OWN = 'our own client';
const CLIENTS: [string, (url: string) => string | Redis][] = [
  [OWN, (url) => url],
  ["a user's client that sends again", (url) => new Redis(url, { maxRetriesPerRequest: null })],
];

const commandsOf = (locks: LockService) =>
  (locks as unknown as { client: { store: { connection: { client: Redis } } } }).client.store.connection
    .client;

/** Each reply is cut off after every number of bytes, where the server has carried the command out. */
describe.each(CLIENTS)('A connection that is cut within a reply, of %s', (client, connect) => {
  const environment = TestEnvironment.ofAll();
  const server = serverOfAll();
  let proxy: TcpProxy;
  let locks: LockService;
  let other: LockService;

  beforeAll(async () => {
    for (const { source } of Object.values(scripts)) await server.client().script('LOAD', source);
    proxy = await TcpProxy.start(server.port);
    environment.add(() => proxy.stop());
    const connection = connect(proxy.url);
    if (typeof connection !== 'string') {
      environment.clientWithListener(connection);
    }
    locks = environment.service({ connection, leaseTime: LEASE });
    other = environment.service({ connection: server.url, leaseTime: LEASE });
  });

  const holder = async (name: string) => (await other.inspect(name))?.holders[0]?.owner;
  /** The cut has happened, and is over. */
  const settled = () =>
    until(() =>
      locks.inspect('any').then(
        () => true,
        () => false,
      ),
    );
  const isFree = async (name: string) => {
    const lease = await other.acquire(name, { waitTime: 60_000 });
    await lease.release();
  };
  /** Promised is what the store has. */
  const expectTruth = async (lease: Lease) => {
    expect(lease.held).toBe(true);
    expect(await holder(lease.name)).toBe(lease.owner);
    expect(await other.tryAcquire(lease.name)).toBeNull();
  };

  it.each(positionsOf(':1763657908000000\r\n'))(
    'to an acquisition, after %i bytes: it is held and known, or it is free',
    async (position) => {
      const name = `acquire:${String(position)}`;
      await settled();
      proxy.cutAfterReplyBytes(position);
      const lease = await locks.acquire(name, { waitTime: 60_000 });
      await expectTruth(lease);
      await lease.release();
      await isFree(name);
      // Without waiting there may be no lease, and then there is no lock either.
      await settled();
      proxy.cutAfterReplyBytes(position);
      const attempt = await locks.tryAcquire(name).catch(() => null);
      if (attempt !== null) await expectTruth(attempt);
      await attempt?.release();
      await isFree(name);
    },
  );

  it.each(positionsOf('*1\r\n:1\r\n'))(
    'to a renewal, after %i bytes: the lease stays, and is never believed longer than it is',
    async (position) => {
      const name = `renew:${String(position)}`;
      const lease = await locks.acquire(name, { leaseTime: LEASE });
      proxy.cutAfterReplyBytes(position);
      await lease.extend(2 * LEASE).catch(() => undefined);
      await expectTruth(lease);
      const left = await server.client().pttl(`lock:${name}`);
      expect(lease.remainingTime()).toBeLessThan(left);
      await lease.release();
      await isFree(name);
    },
  );

  it.each(positionsOf(':1\r\n'))(
    "to a release, after %i bytes: it is free, and never again this holder's",
    async (position) => {
      const name = `release:${String(position)}`;
      const lease = await locks.acquire(name);
      proxy.cutAfterReplyBytes(position);
      await lease.release();
      expect(lease.held).toBe(false);
      const next = await other.acquire(name, { waitTime: 60_000 });
      await settled();
      expect(await holder(name)).toBe(next.owner);
      expect(next.held).toBe(true);
      await next.release();
    },
  );

  it.each(['getLock', 'getFairLock'] as const)(
    'before the answer to a forced release, of a lock by %s: the next owner keeps it',
    async (get) => {
      const name = `forced:${get}`;
      await other[get](name).acquire();
      const third = environment.service({ connection: server.url, leaseTime: LEASE });
      const waiting = third[get](name).acquire();
      await until(async () => (await other.inspect(name))?.queue.length === 1);
      await settled();
      proxy.replyDelay(500);
      const forced = locks.forceRelease(name).catch((error: unknown) => error);
      const next = await waiting;
      proxy.replyDelay(0);
      proxy.cut();
      // Only the client of the application sends it again, and gets an answer. On a slow machine the answer comes before.
      const answer = await forced;
      if (client !== OWN || answer === true) expect(answer).toBe(true);
      else expect(answer).toMatchObject({ code: 'LOCK_UNAVAILABLE' });
      await settled();
      expect(await holder(name)).toBe(next.owner);
      expect(next.held).toBe(true);
      await next.release();
    },
  );

  it('leaves nothing behind in the end', async () => {
    await until(async () => (await lockKeys(server.client())).length === 0);
  });
});

describe('A connection that is slow', () => {
  const environment = TestEnvironment.ofAll();

  /** Two services, one of them behind a proxy. */
  async function nearAndFar(connect: (url: string) => string | Redis = (url) => url) {
    const server = await environment.server();
    const proxy = await TcpProxy.start(server.port);
    environment.add(() => proxy.stop());
    const near = environment.service({ connection: server.url, leaseTime: LEASE });
    const connection = connect(proxy.url);
    if (typeof connection !== 'string') environment.client(connection);
    const far = environment.service({ connection, leaseTime: LEASE });
    return { server, proxy, near, far };
  }

  it('gives no caller a lease that is over, where the message of the grant took longer than the lease', async () => {
    const { proxy, near, far } = await nearAndFar();
    const lease = await near.getFairLock('brief').acquire();
    const acquired = far
      .getFairLock('brief')
      .acquire({ leaseTime: 300 })
      .then(({ held }) => held);
    await until(async () => (await near.inspect('brief'))?.queue.length === 1);
    proxy.replyDelay(600);
    await lease.release();
    await sleep(500);
    proxy.replyDelay(0);
    expect(await acquired).toBe(true);
  });

  it.each([
    ['after the release', (lease: Lease) => lease.release()],
    [
      'after the loss',
      async (lease: Lease, locks: LockService) => {
        await locks.forceRelease(lease.name);
        await expect(lease.extend(LEASE)).rejects.toMatchObject({ reason: 'deleted' });
      },
    ],
  ])('leaves no grant of a message without a holder, where a request arrives %s', async (_when, end) => {
    // Own connections that are silent for a second count as dropped.
    const { server, proxy, near, far } = await nearAndFar((url) => new Redis(url));
    const gone = await TcpProxy.start(server.port);
    await environment
      .service({ connection: gone.url, leaseTime: LEASE })
      .getFairLock('late')
      .acquire({ leaseTime: 3_000 });
    await gone.stop();
    const acquired = far.getFairLock('late').acquire({ waitTime: 60_000 });
    await until(async () => (await near.inspect('late'))?.queue.length === 1);
    // It looks again by itself when that lease is over. Somebody else, who is quicker, lets it in by a message.
    proxy.requestDelay(1_500);
    await until(async () => (await server.client().exists('lock:late')) === 0);
    expect(await near.getFairLock('late').tryAcquire()).toBeNull();
    const lease = await acquired;
    proxy.requestDelay(0);
    commandsOf(far).disconnect(true);
    await once(commandsOf(far), 'ready');
    await end(lease, near);
    await until(async () => proxy.underway('requests') === 0 || (await near.inspect('late')) !== null);
    await (await near.getFairLock('late').acquire()).release();
  });
});
