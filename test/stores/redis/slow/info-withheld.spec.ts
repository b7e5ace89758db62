import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Cluster, Redis } from 'ioredis';
import { Cluster as Cluster5, Redis as Redis5 } from 'ioredis-5';
import type { LockService, RedisConnection } from '../../../../lib/index.js';
import { TestEnvironment } from '../../../support/test-environment.js';
import { until } from '../../../scenarios/until.js';
import { handedOver } from '../handed-over.js';
import { refusal } from '../refusal.js';
import { RedisCluster } from '../../../support/redis-cluster.js';

const environment = new TestEnvironment();

beforeEach(() => {
  // ioredis says that it goes on without.
  jest.spyOn(console, 'warn').mockImplementation(() => undefined);
});

afterEach(async () => {
  jest.restoreAllMocks();
  await environment.end();
});

/** From one service to another, with a message, and then what health knows. */
async function used(one: LockService, two: LockService): Promise<void> {
  await handedOver(one, two);
  const { status, nodes } = await two.health();
  expect(status).toBe('up');
  for (const node of nodes)
    expect(node).toMatchObject({ role: undefined, version: undefined, error: undefined });
}

const WITHOUT_INFO: [string, string[], string | undefined][] = [
  ['forbidden', [], '-info'],
  ['renamed away', ['--rename-command', 'INFO', 'hidden-info'], undefined],
];

describe.each(WITHOUT_INFO)('Where INFO is %s', (_, args, rule) => {
  it('locks work, and health knows less', async () => {
    const server = await environment.server({ args });
    if (rule !== undefined) await server.client().acl('SETUSER', 'default', rule);
    const [one, two] = [0, 1].map(() => environment.service({ connection: server.url }));
    await used(one!, two!);
  });
});

const refused = (connection: RedisConnection) => refusal(environment.service({ connection }));

/** The client of an application: for TypeScript the versions are classes of their own. */
const ownClient = <C extends Redis | Cluster>(own: C): C => environment.clientWithListener(own);

it('A client of the application that insists on INFO is refused at once, by the name of the command', async () => {
  const server = await environment.server({ args: ['--rename-command', 'INFO', 'hidden-info'] });
  for (const Client of [Redis, Redis5 as unknown as typeof Redis]) {
    expect(await refused(ownClient(new Client(server.url)))).toMatch(/unknown command 'info'/i);
    const ready = [0, 1].map(() => {
      const connection = ownClient(new Client(server.url, { enableReadyCheck: false }));
      return environment.service({ connection });
    });
    await used(ready[0]!, ready[1]!);
  }
});

it('Where INFO and CLUSTER INFO are forbidden, a cluster works, and a client that insists on them is refused by name', async () => {
  const cluster = await RedisCluster.start();
  environment.add(() => cluster.stop());
  for (const server of cluster.servers)
    await server.client().acl('SETUSER', 'default', '-info', '-cluster|info');
  const [one, two] = [0, 1].map(() => environment.service({ connection: { cluster: cluster.addresses } }));
  await used(one!, two!);

  for (const Client of [Cluster, Cluster5 as unknown as typeof Cluster]) {
    const insisting = ownClient(new Client(cluster.addresses));
    expect(await refused(insisting)).toMatch(/NOPERM.*cluster\|info/);
    const connection = ownClient(new Client(cluster.addresses, { enableReadyCheck: false }));
    await (await environment.service({ connection }).acquire('key')).release();
    for (const server of cluster.servers) await server.client().acl('SETUSER', 'default', '+cluster|info');
    const locks = environment.service({ connection: insisting });
    await until(async () => (await locks.health()).status === 'up');
    await (await locks.acquire('key')).release();
    for (const server of cluster.servers) await server.client().acl('SETUSER', 'default', '-cluster|info');
  }
});
