import { afterAll, describe, expect, it } from '@jest/globals';
import type { LockService } from '../../../lib/index.js';
import { until } from '../../scenarios/until.js';
import { RedisServer } from '../../support/redis-server.js';
import { TestEnvironment } from '../../support/test-environment.js';

const environment = new TestEnvironment();
const servers: RedisServer[] = [];

afterAll(async () => {
  await environment.end();
  await Promise.all(servers.map((server) => server.stop()));
});

const start = async () => {
  const server = await RedisServer.start();
  servers.push(server);
  return server;
};

/** ms that a call took to fail with LockUnavailableError. */
async function failureOf(call: Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await expect(call).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
  return performance.now() - begun;
}

const disconnected = (locks: LockService, nodes = 1) => {
  let gone = 0;
  locks.events$.subscribe(({ type }) => {
    if (type === 'disconnected') gone++;
  });
  return () => gone >= nodes;
};

describe('failFast', () => {
  it('fails at once while the connection is down, and takes the lock when it is back', async () => {
    const server = await start();
    const locks = environment.service({ connection: server.url, waitTime: 20_000 });
    const isGone = disconnected(locks);
    const held = await locks.acquire('held');
    await server.kill();
    await until(isGone);

    expect(await failureOf(locks.acquire('a', { failFast: true }))).toBeLessThan(500);
    expect(await failureOf(locks.getFairLock('a').tryAcquire({ failFast: true }))).toBeLessThan(500);
    expect(await failureOf(locks.acquire(['a', 'b'], { failFast: true }))).toBeLessThan(500);
    expect(await failureOf(locks.acquire('a', { waitTime: 800 }))).toBeGreaterThan(700);
    void held.release();

    const waiting = locks.acquire('a');
    await server.restart();
    await (await waiting).release();
    await until(async () => {
      const lease = await locks.acquire('a', { failFast: true }).catch(() => undefined);
      await lease?.release();
      return lease !== undefined;
    });
  }, 40_000);

  it('does not refuse a lock that the scope re-enters', async () => {
    const server = await start();
    const locks = environment.service({ connection: server.url, failFast: true });
    const isGone = disconnected(locks);
    await locks.using('a', async () => {
      await server.kill();
      await until(isGone);
      await (await locks.acquire('a')).release();
      expect(await failureOf(locks.acquire('b'))).toBeLessThan(500);
    });
  }, 20_000);

  it('of a quorum fails where a majority is down, with what each node said', async () => {
    const nodes = await Promise.all([start(), start(), start()]);
    const locks = environment.service({
      nodes: nodes.map(({ url }) => url),
      waitTime: 20_000,
      failFast: true,
    });
    const isGone = disconnected(locks, 2);
    await until(async () => (await locks.health()).status === 'up');
    await nodes[0].kill();
    await nodes[1].kill();
    await until(isGone);
    const refused: unknown = await locks.acquire('a').catch((error: unknown) => error);
    expect(refused).toMatchObject({
      code: 'LOCK_UNAVAILABLE',
      outcomes: [
        { node: expect.any(String), outcome: 'error' },
        { node: expect.any(String), outcome: 'error' },
      ],
    });
  }, 60_000);

  it.each(['yes', 1, null])('cannot be %j', async (failFast) => {
    const options = { store: 'memory', failFast: failFast as unknown as boolean } as const;
    expect(() => environment.service(options)).toThrow(/^failFast: must be true or false/);
  });
});
