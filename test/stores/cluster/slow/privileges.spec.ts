import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { LockService } from '../../../../lib/index.js';
import { TestEnvironment } from '../../../support/test-environment.js';
import { until } from '../../../scenarios/until.js';
import { CLUSTER_PRIVILEGES, createLeastUser, LEAST_PRIVILEGES } from '../../../support/acl.js';
import { RedisCluster } from '../../../support/redis-cluster.js';

/** What ioredis asks for, and does without. */
const IDLE = ['client|setname', 'client|setinfo', 'readonly'];

describe('The privileges that the guide lists for Redis Cluster', () => {
  const environment = new TestEnvironment();
  let cluster: RedisCluster;

  beforeAll(async () => {
    cluster = await RedisCluster.start();
  });

  afterAll(async () => {
    await environment.end();
    await cluster.stop();
  });

  async function everything(username: string, privileges: readonly string[]): Promise<void> {
    const users = cluster.servers.map((server) => createLeastUser(server.client(), username, privileges));
    const [redisOptions] = await Promise.all(users);
    const connection = { cluster: cluster.addresses, options: { redisOptions: redisOptions! } };
    const [one, two] = [0, 1].map(() => environment.service({ connection, waitTime: 5_000 }));
    const kinds = [
      (service: LockService) => service.getLock(`plain of ${username}`),
      (service: LockService) => service.getFairLock(`fair of ${username}`),
      (service: LockService) => service.getMultiLock(['a', 'b', 'c'].map((name) => service.getLock(name))),
    ];
    for (const kind of kinds) {
      const lease = await kind(one!).acquire();
      const waiting = kind(two!).acquire();
      await Promise.all([waiting.then((next) => next.release()), lease.release()]);
    }
    // A hold of Redisson's: the first in the queue listens for its release.
    const foreign = `foreign to ${username}`;
    const redis = cluster.client();
    await redis.hset(`lock:${foreign}`, 'another:1', 1);
    await redis.pexpire(`lock:${foreign}`, 500);
    await (await one!.acquire(foreign)).release();
    await one!.using('seen', async () => {
      expect(await one!.inspect('seen')).toMatchObject({ holders: [{ local: true }] });
    });
    await one!.list().catch(() => undefined);
    expect(await one!.health()).toMatchObject({ status: 'up' });
  }

  const refused = async (): Promise<string[]> => {
    const logs = cluster.servers.map((server) => server.client().call('ACL', 'LOG') as Promise<string[][]>);
    const objects = (await Promise.all(logs)).flat().map((entry) => entry[entry.indexOf('object') + 1] ?? '');
    // Looked at for a warning only: a node of a quorum is no node of a cluster.
    return objects.filter((object) => object !== '~ndl:quorum');
  };

  it('are all that is asked for', async () => {
    await everything('all', [...LEAST_PRIVILEGES, ...CLUSTER_PRIVILEGES]);
    expect((await refused()).filter((name) => !IDLE.includes(name))).toEqual([]);
  });

  it.each(CLUSTER_PRIVILEGES)('%s is one of them', async (privilege) => {
    const rest = [...LEAST_PRIVILEGES, ...CLUSTER_PRIVILEGES].filter((other) => other !== privilege);
    await everything(`without ${privilege}`.replace(/\W/g, '-'), rest).catch(() => undefined);
    // A subscription lingers before it ends.
    await until(async () => (await refused()).includes(privilege.slice(1)));
  });

  it('are not asked for again and again by a subscription that is refused', async () => {
    const rest = LEAST_PRIVILEGES.filter((privilege) => privilege !== '+subscribe');
    await everything('mute', [...rest, ...CLUSTER_PRIVILEGES]).catch(() => undefined);
    const rejected = cluster.servers.map(async (server) => {
      const stats = await server.client().info('commandstats');
      return Number(/^cmdstat_subscribe:.*rejected_calls=(\d+)/m.exec(stats)?.[1] ?? 0);
    });
    const times = (await Promise.all(rejected)).reduce((sum, each) => sum + each, 0);
    expect(times).toBeGreaterThan(0);
    expect(times).toBeLessThan(15);
  });
});
