import { beforeAll, describe, expect, it } from '@jest/globals';
import type { LockService } from '../../lib/index.js';
import { type Lock, type LockModuleOptions, LockTimeoutError, MemoryLockStore } from '../../lib/index.js';
import { TestEnvironment } from '../support/test-environment.js';

/** Of a lease of 10 minutes that has just begun. In the queue of a fair lock the claim of a waiter may come after it. */
const expectLeft = ({ remainingTime = 0 }: LockTimeoutError) => {
  expect(remainingTime).toBeGreaterThan(300_000);
  expect(remainingTime).toBeLessThanOrEqual(602_000);
  expect(Number.isInteger(remainingTime)).toBe(true);
};

describe('A busy member', () => {
  const environment = TestEnvironment.ofAll();

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
