import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import {
  isLockTimeoutError,
  type Lock,
  type LockModuleOptions,
  LockService,
  LockTimeoutError,
  MemoryLockStore,
  type UsingOptions,
} from '../../lib/index.js';
import { startRedis, type TestRedis } from '../support/redis.js';
import { TestEnvironment } from '../support/test-environment.js';

/** Of a lease of 10 minutes that has just begun. In the queue of a fair lock the claim of a waiter may come after it. */
const expectLeft = ({ remainingTime = 0 }: LockTimeoutError) => {
  expect(remainingTime).toBeGreaterThan(300_000);
  expect(remainingTime).toBeLessThanOrEqual(602_000);
  expect(Number.isInteger(remainingTime)).toBe(true);
};

describe('A busy member', () => {
  const environment = new TestEnvironment();
  afterAll(() => environment.end());

  const STORES: [string, () => Promise<LockModuleOptions>][] = [
    ['memory', () => Promise.resolve({ store: new MemoryLockStore() })],
    ['Redis', async () => ({ connection: (await environment.server()).url })],
    [
      'a quorum',
      async () => ({
        nodes: (await Promise.all([1, 2, 3].map(() => environment.server()))).map(({ url }) => url),
      }),
    ],
  ];

  describe.each(STORES)('A multi-lock that does not get its locks in time on %s', (store, open) => {
    let locks: LockService;
    let other: LockService;

    beforeAll(async () => {
      const options = await open();
      [locks, other] = [environment.service(options), environment.service(options)];
    });

    const SEVERAL: [string, (service: LockService) => Lock][] = [
      [
        'plain locks',
        (service) => service.getMultiLock(['a', 'b', 'c'].map((name) => service.getLock(name))),
      ],
      [
        'a multi-lock and a lock',
        (service) =>
          service.getMultiLock([
            service.getMultiLock([service.getLock('a'), service.getLock('b')]),
            service.getLock('c'),
          ]),
      ],
      [
        'locks of two kinds',
        (service) =>
          service.getMultiLock([service.getFairLock('a'), service.getLock('b'), service.getLock('c')]),
      ],
    ];

    it.each(SEVERAL)(
      'names the one of %s that is in the way, its holder, and the time left',
      async (title, several) => {
        if (store === 'a quorum' && title === 'locks of two kinds') return;
        const held = await other.acquire('b', { leaseTime: 600_000 });
        for (const waitTime of [0, 300]) {
          const error: unknown = await several(locks)
            .acquire({ waitTime })
            .catch((reason: unknown) => reason);
          expect(error).toBeInstanceOf(LockTimeoutError);
          expect(error).toMatchObject({ key: 'b', holder: held.owner });
          expectLeft(error as LockTimeoutError);
          const state = await locks.inspect((error as LockTimeoutError).key ?? '');
          expect(state?.holders).toMatchObject([{ owner: held.owner }]);
        }
        await held.release();
        await (await several(locks).acquire()).release();
      },
    );
  });
});

describe('The time left', () => {
  let redis: TestRedis;
  let holder: LockService | undefined;
  let caller: LockService;

  beforeAll(async () => {
    redis = await startRedis();
  });

  afterAll(() => redis.stop());

  afterEach(async () => {
    await Promise.all([holder?.close(), caller.close()]);
    holder = undefined;
  });

  const refusal = (call: Promise<unknown>): Promise<LockTimeoutError> =>
    call.then(
      () => Promise.reject(new Error('the lock is not busy')),
      (error: unknown) => (isLockTimeoutError(error) ? error : Promise.reject(error as Error)),
    );

  describe.each([
    ['memory', () => ({ store: new MemoryLockStore() })],
    ['Redis', () => ({ connection: redis.url })],
  ])('LockTimeoutError on %s', (_, options) => {
    const open = (): [holder: LockService, caller: LockService] => {
      const shared = options();
      holder = new LockService(shared);
      caller = new LockService(shared);
      return [holder, caller];
    };

    it.each<[string, UsingOptions]>([
      ['a plain lock', {}],
      ['a fair lock', { kind: 'fair' }],
      ['a write lock', { kind: 'write' }],
    ])('says what the lease in the way has left, of %s', async (_kind, kind) => {
      const [holder, caller] = open();
      await holder.acquire('a', { ...kind, leaseTime: 600_000 });
      for (const waitTime of [0, 30]) {
        expectLeft(await refusal(caller.acquire('a', { ...kind, waitTime })));
        expectLeft(await refusal(holder.acquire('a', { ...kind, waitTime })));
      }
    });
  });
});
