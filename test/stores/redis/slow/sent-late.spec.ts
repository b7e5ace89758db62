import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { type LockService, LockUnavailableError } from '../../../../lib/index.js';
import { Stage, until } from '../../../pitfalls/stage.js';
import { lockKeys } from '../../../support/keys.js';
import { areTakenBack } from '../../../support/taken-back.js';
import type { TcpProxy } from '../../../support/tcp-proxy.js';

/** ms */
const LEASE = 2_000;

const stage = Stage.set();

const kinds: [string, (locks: LockService) => Promise<unknown>][] = [
  ['a lock', (locks) => locks.tryAcquire('a')],
  ['several locks', (locks) => locks.tryAcquire(['a', 'b'])],
  ['a place in a queue', (locks) => locks.getFairLock('a').acquire({ waitTime: 300 })],
];

/** ms until the first copy of a command arrives. */
const LATE = 5_000;

/** What has just been sent comes after a second copy, over the connection that is gone. */
async function overtake(proxy: TcpProxy, client: Redis): Promise<void> {
  await until(() => proxy.underway('requests') > 0);
  proxy.requestDelay(0);
  client.disconnect(true);
  await once(client, 'ready');
}

/** Knows the server, and hears its messages. */
async function start(options: Parameters<Stage['service']>[0]): Promise<LockService> {
  const locks = stage.service({ leaseTime: LEASE, ...options });
  await locks.health();
  await (await locks.getFairLock('before').acquire({ waitTime: 60_000 })).release();
  return locks;
}

describe('An acquisition that is carried out when its lease would be over', () => {
  it.each(kinds)("is taken back where the application's client sends it again: %s", async (_, acquire) => {
    const proxy = await stage.proxy();
    const client = stage.client(proxy.url, { maxRetriesPerRequest: 1_000 });
    const locks = await start({ connection: client });
    proxy.dropRequests(true);
    const refused = expect(acquire(locks)).rejects.toBeInstanceOf(LockUnavailableError);
    await sleep(20);
    proxy.refuse(true);
    proxy.cut();
    proxy.dropRequests(false);
    await refused;
    await sleep(LEASE + 500);
    const monitor = await stage.server.monitor();
    proxy.refuse(false);
    await until(() => areTakenBack(monitor));
    await monitor.stop();
    expect(await lockKeys(stage.redis)).toEqual([]);
  });
});

describe("An acquisition that the application's client sends again, and whose second copy is refused", () => {
  beforeEach(() => stage.redis.acl('SETUSER', 'locks', 'reset', 'on', '>word', '~*', '&*', '+@all'));

  it.each(kinds.slice(0, 2))('is taken back, for the first was carried out: %s', async (_, acquire) => {
    const proxy = await stage.proxy();
    const url = proxy.url.replace('//', '//locks:word@');
    const locks = stage.service({ connection: stage.client(url) });
    await locks.health();
    await (await locks.acquire('before')).release();
    proxy.dropReplies(true);
    const refused = expect(acquire(locks)).rejects.toMatchObject({ effect: 'unknown' });
    await until(async () => (await lockKeys(stage.redis)).length > 0);
    await stage.redis.acl('SETUSER', 'locks', '-evalsha', '-eval');
    proxy.cut();
    proxy.dropReplies(false);
    await refused;
    await stage.redis.acl('SETUSER', 'locks', '+evalsha', '+eval');
    await until(async () => (await lockKeys(stage.redis)).length === 0);
  });
});

describe("A command of the application's client that arrives after its second copy", () => {
  it('gives no owner an entry or the lock that has released it, where it is a release with an entry', async () => {
    const proxy = await stage.proxy();
    const client = stage.client(proxy.url);
    const locks = stage.service({ connection: client, localHandoff: 0 });
    const lease = await locks.acquire('a');
    const second = locks.acquire('a');
    await until(() =>
      stage.redis.pubsub('CHANNELS', 'lock_queue__channel:*').then(({ length }) => length > 0),
    );
    await sleep(50);
    proxy.requestDelay(LATE);
    void lease.release();
    await overtake(proxy, client);
    await (await second).release();
    const monitor = await stage.server.monitor();
    await until(() => proxy.underway('requests') === 0);
    await until(() => monitor.commands.some((command) => command.includes(lease.owner)));
    await monitor.stop();
    await until(async () => (await lockKeys(stage.redis)).length === 0);
  });
});
