import { expect, it } from '@jest/globals';
import { LockService } from '../../../lib/index.js';
import { RedisServer } from '../../support/redis-server.js';

it('a user that may not write what waits is told that deadlocks over processes are not found, once', async () => {
  const server = await RedisServer.start();
  const redis = server.client();
  await redis.call('ACL', 'SETUSER', 'narrow', 'on', '>pw', '~lock:[ab]*', '&*', '+@all');
  const url = `redis://narrow:pw@127.0.0.1:${String(server.port)}`;
  const [one, two] = [1, 2].map(() => new LockService({ connection: url, lockOrder: 'off' }));
  const told: string[] = [];
  one!.events$.subscribe((event) => event.type === 'warning' && told.push(`${event.code} ${event.message}`));
  const lease = await two!.acquire('b');
  const waiting = one!.using('a', () => one!.acquire('b', { waitTime: 6_000 }));
  await expect(waiting).rejects.toMatchObject({ reason: 'timeout' });
  await lease.release();
  expect(told).toEqual([expect.stringMatching(/^deadlock-notes .*NOPERM/)]);
  await Promise.all([one!.close(), two!.close()]);
  await server.stop();
});
