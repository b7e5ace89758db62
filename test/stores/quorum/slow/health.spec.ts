import { describe, expect, it } from '@jest/globals';
import { until } from '../../../scenarios/until.js';
import type { RedisServer } from '../../../support/redis-server.js';
import { QuorumEnvironment } from '../quorum-environment.js';

const LEASE = 20_000;

describe('The health of a quorum', () => {
  const environment = QuorumEnvironment.forEach(3);

  it('tells of a node whose messages come from another server, although it has other waiters for the same lock', async () => {
    const [way] = await environment.proxies();
    const elsewhere = await environment.server();
    const locks = environment.quorum({ leaseTime: LEASE }, [way!.url, ...environment.urls.slice(1)]);
    const others = environment.quorum({ leaseTime: LEASE });
    await Promise.all([environment.settled(locks), environment.settled(others)]);
    way!.leadTo(elsewhere.port);
    const held = await others.acquire('a');
    const isHeardAt = (server: RedisServer) =>
      until(async () => (await server.client().pubsub('CHANNELS', '*{lock:a}')).length > 0);
    const waiting = [others.acquire('a', { waitTime: LEASE })];
    await isHeardAt(environment.node(0));
    waiting.push(locks.acquire('a', { waitTime: LEASE }));
    await isHeardAt(elsewhere);
    const lease = await locks.acquire('b');
    await until(
      async () => (await locks.health()).nodes[0]?.error?.includes('leads to another server') === true,
    );
    await Promise.all([held, lease].map((each) => each.release()));
    await Promise.all(waiting.map(async (granted) => (await granted).release()));
  });

  it('tells of a node that is up and does not vote, also where no lock was asked for since', async () => {
    const locks = environment.quorum({ leaseTime: LEASE });
    await environment.settled(locks);
    await environment.node(0).restart();
    await until(async () => (await locks.health()).nodes[0]?.role === 'master');
    const { status, nodes } = await locks.health();
    expect(status).toBe('degraded');
    expect(nodes[0]).toMatchObject({
      status: 'degraded',
      error: expect.stringMatching(/restarted.*vote/) as unknown,
    });
    expect(nodes[0]?.quarantine).toBeGreaterThan(0);
    expect(nodes[0]?.quarantine).toBeLessThanOrEqual(LEASE + 1_000);
    await until(async () => (await locks.health()).status === 'up');
  });

  it('tells which node withholds what its vote depends on', async () => {
    await environment.node(1).client().call('ACL', 'SETUSER', 'default', '-info');
    const locks = environment.quorum({ leaseTime: LEASE });
    await until(async () => (await locks.health()).nodes[1]?.status !== 'down');
    const { nodes } = await locks.health();
    expect(nodes[1]).toMatchObject({ status: 'degraded', quarantine: Infinity });
    expect(nodes[1]?.error).toMatch(/INFO/);
    await (await locks.acquire('a')).release();
  });
});
