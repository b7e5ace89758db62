import 'reflect-metadata';
import { afterEach, describe, expect, it } from '@jest/globals';
import { Controller, Get, type INestApplication, Module, Query } from '@nestjs/common';
import { HealthCheck, HealthCheckService, HealthIndicatorService, TerminusModule } from '@nestjs/terminus';
import { Test } from '@nestjs/testing';
import { ElectionHealthIndicator, LockHealthIndicator } from '../../lib/health/index.js';
import { LockModule, LockService, MemoryLockStore, type HealthStatus } from '../../lib/index.js';
import type { StoreHealth } from '../../lib/store/index.js';

interface Answer {
  status: string;
  details?: { locks: object };
}

/** Says of itself what the test tells it to. */
class TellingStore extends MemoryLockStore {
  status: HealthStatus = 'up';

  override health(): Promise<StoreHealth> {
    const { status } = this;
    const error = status === 'up' ? undefined : 'told to';
    const warnings = [{ code: 'replica', node: 'a', message: 'is a replica' }];
    return Promise.resolve({ status, nodes: [{ node: 'a', status, latency: 1, error }], warnings });
  }
}

@Controller()
class HealthController {
  constructor(
    private readonly health: HealthCheckService,
    private readonly locks: LockHealthIndicator,
  ) {}

  @Get('health')
  @HealthCheck()
  check(@Query('instance') instance?: string) {
    return this.health.check([() => this.locks.isHealthy('locks', { instance })]);
  }
}

@Module({
  imports: [TerminusModule],
  controllers: [HealthController],
  providers: [LockHealthIndicator, ElectionHealthIndicator],
})
class HealthModule {}

// Terminus 12 has a word for it.
const knowsDegraded = 'degraded' in new HealthIndicatorService().check('any');

describe('LockHealthIndicator', () => {
  const store = new TellingStore();
  const audit = new TellingStore();
  let app: INestApplication;

  const open = async () => {
    const module = await Test.createTestingModule({
      imports: [
        LockModule.forRoot({ store }),
        LockModule.forRoot({ store: audit, name: 'audit', isGlobal: false }),
        HealthModule,
      ],
    }).compile();
    app = module.createNestApplication();
    app.useLogger(false);
    await app.listen(0, '127.0.0.1');
  };

  const health = async (instance?: string) => {
    const query = instance === undefined ? '' : `?instance=${instance}`;
    const response = await fetch(`${await app.getUrl()}/health${query}`);
    return { code: response.status, ...((await response.json()) as Answer) };
  };

  afterEach(async () => {
    await app.close();
    store.status = 'up';
    audit.status = 'up';
  });

  it('answers 200 while locks are up, with what the service knows', async () => {
    await open();
    const lease = await app.get(LockService).acquire('a');
    const answer = await health();
    expect(answer).toMatchObject({ code: 200, status: 'ok' });
    expect(answer.details?.locks).toMatchObject({
      status: 'up',
      held: 1,
      waiting: 0,
      renewalHeadroom: expect.any(Number),
      renewalStuck: false,
      nodes: [{ node: 'a', status: 'up', latency: 1 }],
      warnings: [{ code: 'replica', message: 'is a replica' }],
    });
    await lease.release();
  });

  it('answers 200 while they are degraded, and says so', async () => {
    await open();
    store.status = 'degraded';
    const locks = knowsDegraded ? { status: 'degraded' } : { status: 'up', degraded: true };
    expect(await health()).toMatchObject({
      code: 200,
      status: knowsDegraded ? 'degraded' : 'ok',
      details: { locks: { ...locks, nodes: [{ status: 'degraded', error: 'told to' }] } },
    });
  });

  it('answers 503 while they are down', async () => {
    await open();
    store.status = 'down';
    expect(await health()).toMatchObject({
      code: 503,
      status: 'error',
      error: { locks: { status: 'down', nodes: [{ status: 'down', error: 'told to' }] } },
    });
  });

  it('asks the instance that is named', async () => {
    await open();
    audit.status = 'down';
    expect(await health()).toMatchObject({ code: 200 });
    expect(await health('audit')).toMatchObject({ code: 503 });
    store.status = 'down';
    audit.status = 'up';
    expect(await health()).toMatchObject({ code: 503 });
    expect(await health('audit')).toMatchObject({ code: 200 });
  });

  it('reports the leader of an election, that no process leads, or what the store answers', async () => {
    await open();
    const report = () => app.get(ElectionHealthIndicator).isHealthy('jobs', 'jobs');
    const election = app.get(LockService).getElection('jobs');
    const none = { status: 'down', state: 'idle', message: 'no process leads' };
    expect(await report()).toEqual({ jobs: none });
    await election.run(async ({ number }) => {
      const { label: leader } = (await election.leader())!;
      expect(await report()).toEqual({ jobs: { status: 'up', state: 'leading', leader, term: number } });
    });
    store.inspect = () => Promise.reject(new Error('away'));
    expect(await report()).toEqual({ jobs: { ...none, message: expect.stringContaining('away') } });
    Reflect.deleteProperty(store, 'inspect');
  });

  it('says how to provide an instance that is not provided', async () => {
    await open();
    await expect(app.get(LockHealthIndicator).isHealthy('locks', { instance: 'none' })).rejects.toMatchObject(
      {
        code: 'LOCK_CONFIG',
        option: 'instance',
        message: expect.stringContaining('import LockModule.forRoot({ name: "none", … })'),
      },
    );
  });
});
