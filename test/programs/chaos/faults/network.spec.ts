import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { RedisServer } from '../../../support/redis-server.js';
import { TcpProxy } from '../../../support/tcp-proxy.js';
import { Random } from '../random.js';
import { networkFaults } from './network.js';

it('counts a request as delayed until it has arrived, also when its client has gone', async () => {
  const server = await RedisServer.start();
  const proxy = await TcpProxy.start(server.port);
  const client = new Redis(proxy.url, { retryStrategy: () => null, disconnectTimeout: 0 });
  try {
    await client.ping();
    const fault = networkFaults([[proxy]]).find(({ name }) => name === 'requests delayed');
    const heal = await fault?.strike({ random: new Random(1), concern: {}, locks: [] });
    client.set('key', 'late').catch(() => undefined);
    await new Promise(setImmediate);
    client.disconnect();
    expect(await server.client().get('key')).toBeNull();
    await heal?.();
    // The proxy has passed it on; the server reads it in its next turn. The delay of this seed is longer.
    await sleep(100);
    expect(await server.client().get('key')).toBe('late');
  } finally {
    client.disconnect();
    await proxy.stop();
    await server.stop();
  }
});
