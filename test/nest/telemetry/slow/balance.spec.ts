import 'reflect-metadata';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import type { TestingModule } from '@nestjs/testing';
import { lastValueFrom, NEVER, Observable, of, throwError } from 'rxjs';
import { DistributedLock, getLockServiceToken, LockService, MemoryLockStore } from '../../../../lib/index.js';
import { deferred } from '../../../doubles/deferred.js';
import { booted, twoServices } from '../booted.js';
import { Sdk } from '../sdk.js';
import { until, useVirtualTime } from '../../../support/virtual-time.js';

useVirtualTime();

@Injectable()
class Orders {
  @DistributedLock('a')
  fail(): Promise<void> {
    return Promise.reject(new Error('no money'));
  }

  @DistributedLock('a')
  stream(kind: 'whole' | 'broken' | 'endless'): Observable<number> {
    if (kind === 'endless') return NEVER;
    return kind === 'whole' ? of(1, 2) : throwError(() => new Error('cut off'));
  }
}

let sdk: Sdk;
let app: TestingModule;
let locks: LockService;
let other: LockService;

beforeAll(() => {
  Sdk.useContext();
});

beforeEach(async () => {
  sdk = new Sdk();
  app = await booted({ imports: twoServices(sdk, new MemoryLockStore()), providers: [Orders] });
  locks = app.get(LockService);
  other = app.get(getLockServiceToken('other'));
});

afterEach(async () => {
  await app.close();
  await sdk.shutdown();
});

afterAll(() => {
  Sdk.dropContext();
});

const fails = (call: Promise<unknown>) => expect(call).rejects.toThrow();
const isWaited = (name: string) => until(async () => ((await locks.inspect(name))?.waiters.local ?? 0) > 0);

/** Each leaves nothing held and nothing waiting. With the outcomes of its calls, and of its holds. */
const CASES: Record<string, readonly [run: () => Promise<unknown>, calls: string[], holds: string[]]> = {
  'a loss that is never released': [
    async () => {
      const lease = await locks.acquire('a');
      await other.forceRelease('a');
      await until(() => lease.signal.aborted);
    },
    ['granted'],
    ['lost'],
  ],
  'a fixed lease that runs out while nothing looks': [
    async () => {
      await locks.acquire('a', { leaseTime: 20 });
      await until(async () => (await sdk.metric('lock.lost')).size > 0);
    },
    ['granted'],
    ['lost'],
  ],
  'waits that end by an abort, a limit, a full queue and nothing': [
    async () => {
      const lease = await other.acquire('a');
      const controller = new AbortController();
      const aborted = locks.acquire('a', { signal: controller.signal });
      await isWaited('a');
      await fails(locks.acquire('a', { maxWaiting: 1 }));
      await fails(locks.acquire('a', { waitTime: 1 }));
      await locks.tryAcquire('a');
      controller.abort();
      await fails(aborted);
      await lease.release();
    },
    ['aborted', 'busy', 'busy', 'busy', 'granted'],
    ['released'],
  ],
  'hand-offs in this process': [
    () => Promise.all([1, 2, 3].map(() => locks.using('a', () => 1))),
    ['granted', 'handed-off', 'handed-off'],
    ['released', 'released', 'released'],
  ],
  'a multi-lock that gives its first member back while the second one is busy': [
    async () => {
      const lease = await other.acquire('b');
      await fails(locks.acquire(['a', 'b'], { waitTime: 20 }));
      await lease.release();
      await locks.using(['a', 'b'], () => 1);
    },
    ['busy', 'granted', 'granted'],
    ['released', 'released', 'released'],
  ],
  'a semaphore, both sides of a read-write lock and a fair lock': [
    async () => {
      const pool = locks.getSemaphore('pool', 2);
      await Promise.all([1, 2, 3].map(() => pool.using(() => 1)));
      const { read, write } = locks.getReadWriteLock('rw');
      await Promise.all([read.using(() => 1), read.using(() => 1), write.using(() => 1)]);
      await locks.getFairLock('fair').using(() => 1);
    },
    Array<string>(7).fill('granted'),
    Array<string>(7).fill('released'),
  ],
  'locks that are entered again': [
    () =>
      locks.using('a', async () => {
        await locks.using('a', () => locks.tryAcquire('a').then((lease) => lease?.release()));
      }),
    ['granted', 're-entered', 're-entered'],
    ['released'],
  ],
  'a method that fails, and streams that complete, fail and are left': [
    async () => {
      const orders = app.get(Orders);
      await fails(orders.fail());
      await lastValueFrom(orders.stream('whole'));
      await fails(lastValueFrom(orders.stream('broken')));
      const left = orders.stream('endless').subscribe();
      await until(() => locks.leases().length > 0);
      left.unsubscribe();
      await until(() => locks.leases().length === 0);
    },
    ['granted', 'granted', 'granted', 'granted'],
    ['released', 'released', 'released', 'released'],
  ],
  // An election asks for as long as it runs: a wait of days is no call that waits for its answer.
  'a term of an election, which is a hold without a call': [
    async () => {
      const begun = deferred();
      const resign = deferred();
      const leading = locks.getElection('leader').run(async () => {
        begun.resolve();
        await resign.promise;
      });
      await begun.promise;
      expect(await sdk.metric('lock.held')).toEqual(new Map([['lock.kind=lock lock.label=election', 1]]));
      resign.resolve();
      await leading;
    },
    [],
    ['released'],
  ],
  'a lease that goes on elsewhere by a ticket: two holds, and one call': [
    async () => {
      const lease = await locks.acquire('a');
      const ticket = await lease.handOver();
      expect([...(await sdk.metric('lock.held')).values()]).toEqual([0]);
      await (await other.resume(ticket)).release();
    },
    ['granted'],
    ['released', 'released'],
  ],
  'a shutdown while one caller holds and others wait': [
    async () => {
      await locks.acquire('a');
      const waiting = [locks.acquire('a'), other.acquire('a')].map(fails);
      await isWaited('a');
      await app.close();
      await Promise.all(waiting);
    },
    ['closed', 'closed', 'granted'],
    ['lost'],
  ],
};

const cases = Object.entries(CASES).map(([title, parts]) => [title, ...parts] as const);

it.each(cases)(
  'nothing is held and nothing waits in the metrics and spans after %s',
  async (_, run, calls, holds) => {
    await run();
    const counts = async (name: string) => new Set((await sdk.metric(name)).values());
    for (const name of ['lock.waiting', 'lock.held']) {
      if (name === 'lock.waiting' && calls.length === 0) continue;
      expect([name, await counts(name)]).toEqual([name, new Set([0])]);
    }
    expect(sdk.openSpans).toBe(0);
    const outcomes = (name: string) => sdk.spans(name).map(({ attributes }) => attributes['lock.outcome']);
    expect(outcomes('lock.acquire').sort()).toEqual(calls);
    expect(outcomes('lock.hold').sort()).toEqual(holds);
  },
);
