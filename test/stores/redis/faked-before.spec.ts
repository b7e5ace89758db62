import { MessageChannel } from 'node:worker_threads';
import { expect, it, jest } from '@jest/globals';
import { Redis } from 'ioredis';
import type { LockService } from '../../../lib/index.js';
import { RedisServer } from '../../support/redis-server.js';

/** What no fake timers replace. */
const turn = () =>
  new Promise<void>((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.once('message', () => {
      port1.close();
      resolve();
    });
    port2.postMessage(0);
  });

it('Locks that are asked for in one turn come where timers were faked before the package was loaded', async () => {
  const server = await RedisServer.start();
  const client = new Redis(server.url);
  let service: LockService | undefined;
  try {
    await client.ping();
    jest.useFakeTimers();
    const { LockService: Service } = await import('../../../lib/index.js');
    service = new Service({ connection: client });
    let granted = 0;
    for (const name of ['a', 'b', 'c']) void service.acquire(name).then(() => granted++);
    const end = jest.getRealSystemTime() + 2_000;
    while (granted < 3 && jest.getRealSystemTime() < end) await turn();
    expect(granted).toBe(3);
  } finally {
    jest.useRealTimers();
    await service?.onApplicationShutdown();
    client.disconnect();
    await server.stop();
  }
});
