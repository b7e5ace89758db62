import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { type LockService, LockUnavailableError } from '../../lib/index.js';
import { Stage, until } from '../pitfalls/stage.js';
import { lockKeys } from '../support/keys.js';
import { areTakenBack } from '../support/taken-back.js';

const LEASE = 1_000;

const stage = Stage.set();

const kinds: [string, (locks: LockService) => Promise<unknown>][] = [
  ['a lock', (locks) => locks.tryAcquire('a')],
  ['several locks', (locks) => locks.tryAcquire(['a', 'b'])],
  ['a place in a queue', (locks) => locks.getFairLock('a').acquire({ waitTime: 300 })],
];

/** Knows the server, and hears its messages. */
async function start(options: Parameters<Stage['service']>[0]): Promise<LockService> {
  const locks = stage.service({ leaseTime: LEASE, ...options });
  await locks.health();
  await (await locks.getFairLock('before').acquire({ waitTime: 5_000 })).release();
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
    await sleep(3 * LEASE);
    const monitor = await stage.server.monitor();
    proxy.refuse(false);
    await until(() => areTakenBack(monitor));
    await monitor.stop();
    expect(await lockKeys(stage.redis)).toEqual([]);
  });
});
