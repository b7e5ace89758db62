import 'reflect-metadata';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { DistributedLock, LockConfigError, LockModule, LockService } from '../../lib/index.js';
import { Troupe } from './troupe.js';

const REASON = /nodes.*a majority of queues is not a queue.*Use connection/;

describe('A quorum', () => {
  let troupe: Troupe;
  let locks: LockService;

  beforeAll(async () => {
    troupe = await Troupe.of(3);
    locks = troupe.quorum();
  });

  afterAll(() => troupe.end());

  it.each<[string, (service: LockService) => unknown]>([
    ['fair lock', (service) => service.getFairLock('a')],
    ['read-write lock', (service) => service.getReadWriteLock('a')],
    ['semaphore', (service) => service.getSemaphore('a', 2)],
  ])('has no %s, and says why', (_, get) => {
    expect(() => get(locks)).toThrow(LockConfigError);
    expect(() => get(locks)).toThrow(REASON);
  });

  it.each(['fair', 'read', 'write'] as const)(
    'runs no method whose decorator wants the kind %s',
    async (kind) => {
      let ran = false;
      @Injectable()
      class Orders {
        @DistributedLock('a', { kind })
        pay(): Promise<void> {
          ran = true;
          return Promise.resolve();
        }
      }
      const app = await Test.createTestingModule({
        imports: [LockModule.forRoot({ nodes: troupe.urls })],
        providers: [Orders],
      }).compile();
      await expect(app.get(Orders).pay()).rejects.toThrow(REASON);
      expect(ran).toBe(false);
      await app.close();
    },
  );

  it('has plain locks and multi-locks, re-entered as everywhere', async () => {
    await locks.using(['a', 'b'], async (lease) => {
      expect(lease.fencingTokens.size).toBe(2);
      await locks.using('a', () => {
        expect(locks.getLock('a').holdCount()).toBe(2);
      });
      expect(await locks.getLock('b').isLocked()).toBe(true);
    });
    expect(await locks.getLock('a').isLocked()).toBe(false);
  });
});
