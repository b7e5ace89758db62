import 'reflect-metadata';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { type DynamicModule, type INestApplication, Injectable, type ModuleMetadata } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { DistributedLock, LockConfigError, LockModule, LockService } from '../../../lib/index.js';
import { QuorumEnvironment } from './quorum-environment.js';

const REASON = /nodes.*a majority of queues is not a queue.*Use connection/;

describe('A quorum', () => {
  let environment: QuorumEnvironment;
  let locks: LockService;
  const apps: INestApplication[] = [];

  beforeAll(async () => {
    environment = await QuorumEnvironment.of(3);
    locks = environment.quorum();
  });

  afterEach(async () => {
    await Promise.all(apps.splice(0).map((app) => app.close()));
  });

  afterAll(async () => {
    await environment.end();
  });

  it.each<[string, (service: LockService) => unknown]>([
    ['fair lock', (service) => service.getFairLock('a')],
    ['read-write lock', (service) => service.getReadWriteLock('a')],
    ['semaphore', (service) => service.getSemaphore('a', 2)],
  ])('has no %s, and says why', (_, get) => {
    expect(() => get(locks)).toThrow(LockConfigError);
    expect(() => get(locks)).toThrow(REASON);
  });

  const KINDS = ['fair', 'read', 'write'] as const;

  const boot = async (imports: DynamicModule, metadata: ModuleMetadata): Promise<INestApplication> => {
    const app = (await Test.createTestingModule({ imports: [imports], ...metadata }).compile())
      .createNestApplication()
      .enableShutdownHooks();
    apps.push(app);
    return await app.init();
  };

  it.each(KINDS)(
    'lets no application boot with a provider whose decorator wants the kind %s',
    async (kind) => {
      @Injectable()
      class Orders {
        @DistributedLock('a', { kind })
        pay(): Promise<void> {
          return Promise.resolve();
        }

        @DistributedLock('list')
        list(): Promise<void> {
          return Promise.resolve();
        }
      }
      @Injectable()
      class MoreOrders extends Orders {
        @DistributedLock('b')
        more(): Promise<void> {
          return Promise.resolve();
        }
      }
      for (const provider of [Orders, MoreOrders]) {
        const booting = boot(LockModule.forRoot({ nodes: environment.urls }), { providers: [provider] });
        await expect(booting).rejects.toThrow(LockConfigError);
        await expect(booting).rejects.toThrow(REASON);
        await expect(booting).rejects.toThrow('@DistributedLock on Orders.pay');
      }
      const app = await boot(LockModule.forRoot({ store: 'memory' }), { providers: [MoreOrders] });
      await Promise.all([app.get(MoreOrders).pay(), app.get(MoreOrders).list(), app.get(MoreOrders).more()]);
    },
  );
});
