import { beforeEach, describe, expect, it } from '@jest/globals';
import type { INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { LockService, type LockModuleOptions } from 'nestjs-distributed-lock';
import { TestEnvironment } from '../../../test/support/test-environment.js';
import { until } from '../../../test/scenarios/until.js';
import { AppModule } from '../../src/app.module.js';

interface Answer {
  code: number;
  status: string;
  details: { locks: { status: string; held: number; nodes: { node: string; status: string }[] } };
}

describe('GET /health of the ticket shop', () => {
  const cast = TestEnvironment.ofEach();
  let app: INestApplication;

  /** The shop, with its locks wherever the options say. */
  async function open(locks: LockModuleOptions): Promise<() => Promise<Answer>> {
    const module = await Test.createTestingModule({ imports: [AppModule.forRoot()] })
      .overrideProvider(LockService)
      .useValue(new LockService(locks))
      .compile();
    app = module.createNestApplication();
    app.useLogger(false);
    await app.listen(0, '127.0.0.1');
    cast.add(() => app.close());
    const url = `${await app.getUrl()}/health`;
    return async () => {
      const response = await fetch(url);
      return { code: response.status, ...((await response.json()) as Omit<Answer, 'code'>) };
    };
  }

  const is = (code: number, status: string, locks: string) => ({
    code,
    status,
    details: { locks: { status: locks } },
  });

  it('is 200 in memory', async () => {
    const health = await open({ store: 'memory' });
    expect(await health()).toMatchObject(is(200, 'ok', 'up'));
  });

  describe('on Redis', () => {
    let server: Awaited<ReturnType<TestEnvironment['server']>>;

    beforeEach(async () => {
      server = await cast.server();
    });

    it('is 200 while it answers, 503 while it is gone, and 200 when it is back', async () => {
      const health = await open({ connection: server.url, leaseTime: 3_000 });
      expect(await health()).toMatchObject(is(200, 'ok', 'up'));
      const lease = await app.get(LockService).acquire('show:tonight');
      const { locks } = (await health()).details;
      expect(locks).toMatchObject({
        held: 1,
        nodes: [{ node: `127.0.0.1:${String(server.port)}`, role: 'master' }],
      });
      await lease.release();

      await server.kill();
      expect(await health()).toMatchObject(is(503, 'error', 'down'));
      await server.restart();
      await until(async () => (await health()).code === 200);
      expect(await health()).toMatchObject(is(200, 'ok', 'up'));
    });

    it('is 200 and degraded while messages do not arrive, which only slows the waiting down', async () => {
      const health = await open({ connection: server.url, leaseTime: 3_000 });
      await app.get(LockService).acquire('a');
      // No room for the connection that hears messages.
      const clients = String(await server.client().client('LIST'))
        .trim()
        .split('\n').length;
      await server.client().config('SET', 'maxclients', clients);
      await expect(app.get(LockService).acquire('a', { waitTime: 100 })).rejects.toMatchObject({
        code: 'LOCK_TIMEOUT',
      });
      expect(await health()).toMatchObject(is(200, 'degraded', 'degraded'));
      await server.client().config('SET', 'maxclients', 10_000);
      await until(async () => (await health()).status === 'ok');
      expect(await health()).toMatchObject(is(200, 'ok', 'up'));
    });
  });

  it('is 200 on a quorum with all of its nodes, 200 with a majority of them, and 503 with less', async () => {
    const servers = await Promise.all([1, 2, 3].map(() => cast.server()));
    const health = await open({ nodes: servers.map(({ url }) => url), leaseTime: 3_000 });
    await until(async () => (await health()).status === 'ok');
    expect(await health()).toMatchObject(is(200, 'ok', 'up'));
    await servers[0]?.kill();
    expect(await health()).toMatchObject(is(200, 'degraded', 'degraded'));
    await (await app.get(LockService).acquire('show:tonight')).release();
    await servers[1]?.kill();
    expect(await health()).toMatchObject(is(503, 'error', 'down'));
  });
});
