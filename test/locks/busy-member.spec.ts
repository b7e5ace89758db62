import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  type Lock,
  type LockModuleOptions,
  type LockService,
  LockTimeoutError,
  MemoryLockStore,
} from '../../lib/index.js';
import { TestEnvironment } from '../support/test-environment.js';

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
    ['plain locks', (service) => service.getMultiLock(['a', 'b', 'c'].map((name) => service.getLock(name)))],
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

  it.each(SEVERAL)('names the one of %s that is in the way, and its holder', async (title, several) => {
    if (store === 'a quorum' && title === 'locks of two kinds') return;
    const held = await other.acquire('b');
    for (const waitTime of [0, 300]) {
      const error: unknown = await several(locks)
        .acquire({ waitTime })
        .catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(LockTimeoutError);
      expect(error).toMatchObject({ key: 'b', holder: held.owner });
      const state = await locks.inspect((error as LockTimeoutError).key ?? '');
      expect(state?.holders).toMatchObject([{ owner: held.owner }]);
    }
    await held.release();
    await (await several(locks).acquire()).release();
  });

  it('names one of a kind with a queue', async () => {
    if (store === 'a quorum') return;
    const held = await other.getFairLock('queued').acquire();
    const both = locks.getMultiLock([locks.getLock('plain'), locks.getFairLock('queued')]);
    const error: unknown = await both.acquire({ waitTime: 0 }).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ key: 'queued', holder: held.owner });
    await held.release();
  });

  it('names the one that this process holds itself', async () => {
    const held = await locks.acquire('c');
    const error: unknown = await locks
      .acquire(['a', 'b', 'c'], { waitTime: 0 })
      .catch((reason: unknown) => reason);
    expect(error).toMatchObject({ key: 'c', holder: held.owner });
    await held.release();
  });
});
