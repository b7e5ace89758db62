import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { LockService } from '../../lib/index.js';
import { Cast } from '../scenarios/cast.js';
import { until } from '../scenarios/until.js';
import type { RedisServer } from '../support/redis-server.js';

const LEASE = 3_000;
/** ms: a sixth of the lease, and what a busy machine may add to it. */
const COMMAND_TIMEOUT = LEASE / 6 + 2_500;

describe('Health', () => {
  const cast = new Cast();
  let server: RedisServer;
  let locks: LockService;

  beforeEach(async () => {
    server = await cast.server();
    locks = cast.service({ connection: server.url, leaseTime: LEASE });
  });

  afterEach(() => cast.end());

  const isUp = async () => (await locks.health()).status === 'up';

  it('is up while Redis answers, and counts what is held and who waits', async () => {
    const node = { node: `127.0.0.1:${String(server.port)}`, status: 'up', error: undefined };
    const idle = await locks.health();
    expect(idle).toMatchObject({
      status: 'up',
      nodes: [node],
      held: 0,
      waiting: 0,
      renewalHeadroom: undefined,
    });
    expect(idle.nodes[0]?.latency).toBeGreaterThan(0);

    const lease = await locks.acquire('a');
    const fixed = await locks.acquire('b', { leaseTime: 60_000 });
    const waiting = Promise.all([locks.acquire('a'), locks.acquire('a')]);
    const busy = await locks.health();
    expect(busy).toMatchObject({ status: 'up', held: 2, waiting: 2 });
    // A fixed lease is not renewed, so it has no say in this.
    expect(busy.renewalHeadroom).toBeGreaterThan(0);
    expect(busy.renewalHeadroom).toBeLessThan(LEASE);

    await lease.release();
    await fixed.release();
    expect(await locks.health()).toMatchObject({ held: 1, waiting: 1 });
    locks.beforeApplicationShutdown();
    await expect(waiting).rejects.toMatchObject({ code: 'LOCK_CLOSED' });
  });

  it.each([
    ['has crashed', () => server.kill(), () => server.restart()],
    [
      'is frozen',
      async () => {
        server.freeze();
      },
      async () => {
        server.thaw();
      },
    ],
  ])('is down when Redis %s, says so in time, and is up again afterwards', async (_, harm, heal) => {
    expect(await isUp()).toBe(true);
    await harm();
    const asked = performance.now();
    const { status, nodes } = await locks.health();
    expect(performance.now() - asked).toBeLessThan(COMMAND_TIMEOUT);
    expect(status).toBe('down');
    expect(nodes).toEqual([
      {
        node: `127.0.0.1:${String(server.port)}`,
        status: 'down',
        latency: undefined,
        error: expect.stringMatching(/./),
      },
    ]);
    await heal();
    await until(isUp);
  });

  it('of what is held shrinks while no renewal comes through', async () => {
    const lease = await locks.acquire('a');
    await server.kill();
    const first = (await locks.health()).renewalHeadroom ?? NaN;
    const second = (await locks.health()).renewalHeadroom ?? NaN;
    expect(second).toBeLessThan(first);
    await until(() => !lease.held);
    expect(await locks.health()).toMatchObject({ status: 'down', held: 0, renewalHeadroom: undefined });
  });
});
