import { afterAll, describe, expect, it } from '@jest/globals';
import type { LockService } from '../../../lib/index.js';
import { outageOf } from '../../../lib/api/outage.js';
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

const expectFailure = (call: Promise<unknown>) =>
  expect(call).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });

const disconnected = (locks: LockService, nodes = 1) => {
  let gone = 0;
  locks.events$.subscribe(({ type }) => {
    if (type === 'disconnected') gone++;
  });
  return () => gone >= nodes;
};

describe('failFast', () => {
  it('fails a caller that would wait for ever while the connection is down, and takes the lock when it is back', async () => {
    const server = await start();
    const locks = environment.service({ connection: server.url, waitTime: Infinity });
    const isGone = disconnected(locks);
    const held = await locks.acquire('held');
    await server.kill();
    await until(isGone);

    await expectFailure(locks.acquire('a', { failFast: true }));
    await expectFailure(locks.getFairLock('a').tryAcquire({ failFast: true, waitTime: Infinity }));
    await expectFailure(locks.acquire(['a', 'b'], { failFast: true }));
    const begun = performance.now();
    await expectFailure(locks.acquire('a', { waitTime: 800 }));
    expect(performance.now() - begun).toBeGreaterThan(700);
    // Callers that wait for less than a command takes are told the reason, too.
    for (const call of [
      locks.acquire('a', { waitTime: 300 }),
      locks.getFairLock('fair').acquire({ waitTime: 300 }),
      locks.acquire(['a', 'b'], { waitTime: 300 }),
      locks.once('once', { period: '1h', waitTime: 300 }, () => undefined),
    ]) {
      const error = await call.then(undefined, (reason: unknown) => reason);
      expect(outageOf(error)).toMatch(/ECONNREFUSED/);
    }
    void held.release();

    const waiting = locks.acquire('a');
    await server.restart();
    await (await waiting).release();
    await until(async () => {
      const lease = await locks.acquire('a', { failFast: true }).catch(() => undefined);
      await lease?.release();
      return lease !== undefined;
    });
  });

  it('does not refuse a lock that the scope re-enters', async () => {
    const server = await start();
    const locks = environment.service({ connection: server.url, waitTime: Infinity, failFast: true });
    const isGone = disconnected(locks);
    await locks.using('a', async () => {
      await server.kill();
      await until(isGone);
      await (await locks.acquire('a')).release();
      await expectFailure(locks.acquire('b'));
    });
  });

  it('of a quorum fails where a majority is down, with what each node said', async () => {
    const nodes = await Promise.all([start(), start(), start()]);
    const locks = environment.service({
      nodes: nodes.map(({ url }) => url),
      waitTime: Infinity,
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
  });

  it.each(['yes', 1, null])('cannot be %j', async (failFast) => {
    const options = { store: 'memory', failFast: failFast as unknown as boolean } as const;
    expect(() => environment.service(options)).toThrow(/^failFast: must be true or false/);
  });
});
