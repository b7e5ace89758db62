import { afterAll, beforeAll, it } from '@jest/globals';
import { Redis, type RedisOptions } from 'ioredis';
import { Redis as OlderRedis } from 'ioredis-5';
import { until } from '../../../scenarios/until.js';
import { SentinelDeployment } from '../../../support/sentinel.js';
import { TestEnvironment } from '../../../support/test-environment.js';

const environment = TestEnvironment.ofEach();
let deployment: SentinelDeployment;

beforeAll(async () => {
  deployment = await SentinelDeployment.start();
});

afterAll(() => deployment.stop());

/** Gives the users of servers and sentinels this password alone, and ends the connections that have used another one. */
async function rotate(password: string): Promise<void> {
  const sentinels = deployment.ports.map((port) => new Redis(port, { enableReadyCheck: false }));
  const clients = [...deployment.servers.map((server) => server.client()), ...sentinels];
  for (const [index, client] of clients.entries()) {
    const user = index < deployment.servers.length ? 'app' : 'watcher';
    await client.acl('SETUSER', user, 'reset', 'on', `>${password}`, '~*', '&*', '+@all');
    await client.client('KILL', 'USER', user);
  }
  for (const client of sentinels) client.disconnect();
}

it.each<[string, (options: RedisOptions) => object]>([
  ['6', (options) => new Redis(options as object)],
  ['5', (options) => new OlderRedis(options as object)],
])(
  'passwords of server and sentinels that rotate on a client of ioredis %s are those of the connection for messages, too',
  async (_, make) => {
    await rotate('first');
    const client = make({
      ...deployment.connection,
      username: 'app',
      password: 'first',
      sentinelUsername: 'watcher',
      sentinelPassword: 'first',
      commandTimeout: 5_000,
      autoResendUnfulfilledCommands: false,
      failoverDetector: true,
      disconnectTimeout: 0,
    }) as Redis;
    client.on('error', () => undefined);
    environment.add(() => {
      client.disconnect();
    });
    const locks = environment.service({ connection: client, leaseTime: 300_000 });
    const holder = environment.service({ connection: deployment.connection, leaseTime: 300_000 });
    /** A hand-over by a message: the holder's lease lasts far longer. */
    const handOver = async () => {
      const held = await holder.acquire('order:1');
      const waiting = locks.acquire('order:1');
      // Its own connection may have to find the new master first.
      const state = () => holder.inspect('order:1').catch(() => null);
      await until(async () => (await state())?.waiters.processes === 1);
      await held.release();
      await (await waiting).release();
    };
    await handOver();

    Object.assign(client.options, { password: 'next', sentinelPassword: 'next' });
    await rotate('next');
    const isUp = async () => (await locks.health()).status === 'up';
    await until(isUp);
    await handOver();
    // A failover is noticed by connections to the sentinels, which have to be let in again, too.
    await deployment.failover(await deployment.master());
    await until(isUp);
    await handOver();
  },
);
