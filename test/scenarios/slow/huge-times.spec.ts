import 'reflect-metadata';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { LockBoardModule } from '../../../lib/board/index.js';
import {
  DistributedLock,
  type Lease,
  LockInterceptor,
  type LockModuleOptions,
  LockService,
  OncePer,
  OnLeader,
} from '../../../lib/index.js';
import { FAIR, type Kind, lockOf, PLAIN, READ, semaphore, WRITE } from '../../queue/kinds.js';
import type { RedisServer } from '../../support/redis-server.js';
import { TestEnvironment } from '../../support/test-environment.js';
import { serverOfAll } from '../../support/test-servers.js';

const YEAR = 31_536_000_000;

/** Beyond one timer, beyond three of them in a lease, beyond 32 bits, and the greatest that the options admit. */
const HUGE = [2 ** 31 - 1, 2 ** 31, 6_500_000_000, 2 ** 33 + 1, YEAR];

/** What Node says when a timer is too long and fires at once. */
const warnings: string[] = [];
const onWarning = ({ name, message }: Error) => warnings.push(`${name}: ${message}`);

describe('No time that the options admit overflows anything', () => {
  const environment = TestEnvironment.ofAll();
  const server = serverOfAll();
  let nodes: RedisServer[];

  beforeAll(async () => {
    nodes = await Promise.all([environment.server(), environment.server(), environment.server()]);
  });

  beforeEach(() => {
    warnings.length = 0;
    process.on('warning', onWarning);
  });

  afterEach(async () => {
    // A warning comes a turn later than its cause.
    await new Promise((resolve) => setTimeout(resolve, 20));
    process.off('warning', onWarning);
    expect(warnings.filter((warning) => warning.includes('Overflow'))).toEqual([]);
    await Promise.all([server, ...nodes].map((one) => one.client().flushall()));
  });

  const PLACES: Record<string, () => LockModuleOptions> = {
    'a server': () => ({ connection: server.url }),
    nodes: () => ({ nodes: nodes.map(({ url }) => url) }),
    memory: () => ({ store: 'memory' }),
    'the options of a server': () => ({ connection: { host: '127.0.0.1', port: server.port } }),
  };

  const KINDS: [string, Kind][] = [
    ['plain', PLAIN],
    ['fair', FAIR],
    ['read', READ],
    ['write', WRITE],
    ['semaphore', semaphore(1)],
  ];

  /** Acquires, is in the way of another, renews, is looked at, and gives way. */
  async function live(locks: LockService, kind: Kind, least: number): Promise<void> {
    const lock = lockOf(locks, 'a', kind);
    const lease = await lock.acquire();
    expect(lease.remainingTime()).toBeGreaterThan(least * 0.98);
    expect(await lock.remainingTime()).toBeGreaterThan(least * 0.98);
    const own = kind === READ ? WRITE : kind;
    expect(await locks.runInScope(() => lockOf(locks, 'a', own).tryAcquire())).toBeNull();
    const waiting = locks.runInScope(() => lockOf(locks, 'a', own).acquire());
    await lease.extend(least);
    expect(lease.held).toBe(true);
    // It stays so: a timer that overflows fires after a millisecond.
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect(lease.held).toBe(true);
    await lease.release();
    await (await waiting).release();
    expect(await lock.isLocked()).toBe(false);
  }

  describe.each(Object.entries(PLACES))('on %s', (place, options) => {
    const kinds = place === 'nodes' ? KINDS.slice(0, 1) : KINDS;

    it.each(HUGE)('with a leaseTime of %d in the module', async (leaseTime) => {
      const locks = environment.service({ ...options(), leaseTime });
      for (const [, kind] of kinds) await live(locks, kind, leaseTime);
      expect((await locks.health()).status).toBe('up');
      await locks.onApplicationShutdown();
    });

    it.each(HUGE)('with %d for every option of a call', async (time) => {
      const locks = environment.service({ ...options(), waitTime: time, maxHoldTime: time });
      for (const [name, kind] of kinds) {
        const lock = lockOf(locks, name, kind);
        for (const renew of [true, false]) {
          const lease = await lock.acquire({ leaseTime: time, waitTime: time, renew });
          expect(lease.remainingTime()).toBeGreaterThan(time * 0.98);
          await lease.release();
        }
        await lock.using({ minHoldTime: time, waitTime: time }, () => undefined);
        const other = lockOf(locks, name, kind === READ ? WRITE : kind);
        expect(await locks.runInScope(() => other.tryAcquire())).toBeNull();
        expect(await lock.remainingTime()).toBeGreaterThan(time * 0.98);
        await lock.forceRelease();
      }
      const group = await locks.acquire(['one', 'two'], { leaseTime: time });
      expect(group.remainingTime()).toBeGreaterThan(time * 0.98);
      await group.release();
      await locks.onApplicationShutdown();
    });
  });

  it('a ticket for a year is good', async () => {
    const locks = environment.service({ connection: server.url });
    const lease = await locks.acquire('travels', { leaseTime: YEAR, renew: true, minHoldTime: YEAR });
    const resumed = await locks.resume(await lease.handOver({ within: YEAR }));
    expect(resumed.remainingTime()).toBeGreaterThan(YEAR * 0.98);
    await resumed.release();
  });
});

/** What is given to an option of a time, and what the error says. */
const REFUSED: [string, unknown, RegExp][] = [
  ['more than a year', YEAR + 1, /to 31536000000 \(one year\).*\(found: 31536000001\)/],
  ['more than a year as a text', '366d', /to 31536000000 \(one year\).*\(found: "366d"\)/],
  ['more than is counted exactly', 2 ** 53, /to 31536000000 \(one year\)/],
  ['null', null, /milliseconds.*\(found: null\)/],
];

describe.each(REFUSED)('A time of %s is refused', (_, time, message) => {
  const environment = TestEnvironment.ofAll();
  const value = time as number;
  let locks: LockService;
  let lease: Lease;

  beforeAll(async () => {
    locks = environment.service({ store: 'memory' });
    lease = await locks.acquire('held');
  });

  const service = (options: object) => new LockService({ store: 'memory', ...options });
  const decorated = (decorate: MethodDecorator) => {
    class Job {
      async run(): Promise<void> {
        await Promise.resolve();
      }
    }
    decorate(Job.prototype, 'run', Object.getOwnPropertyDescriptor(Job.prototype, 'run')!);
  };

  it.each<[string, () => unknown]>([
    ...['leaseTime', 'waitTime', 'maxHoldTime', 'longWaitTime', 'longHoldTime'].map(
      (option): [string, () => unknown] => [`${option} of the module`, () => service({ [option]: value })],
    ),
    [
      'replication.timeout',
      () =>
        service({ store: undefined, connection: 'redis://a', replication: { replicas: 1, timeout: value } }),
    ],
    ...['leaseTime', 'waitTime', 'minHoldTime'].flatMap((option): [string, () => unknown][] => {
      const options = { [option]: value };
      return [
        [`${option} of acquire()`, () => locks.acquire('a', options)],
        [`${option} of tryAcquire()`, () => locks.tryAcquire('a', options)],
        [`${option} of using()`, () => locks.using('a', options, () => undefined)],
        [`${option} of several names`, () => locks.acquire(['a', 'b'], options)],
        [`${option} of a lock`, () => locks.getFairLock('a').acquire(options)],
        [`${option} of a semaphore`, () => locks.getSemaphore('a', 2).acquire(options)],
        [`${option} of a preset`, () => service({ presets: { long: options } })],
        [
          `${option} of @DistributedLock`,
          () => {
            decorated(DistributedLock('a', options) as MethodDecorator);
          },
        ],
        [`${option} of LockInterceptor`, () => LockInterceptor('a', options)],
      ];
    }),
    ...['period', 'retryAfterFailure', 'waitTime'].flatMap((option): [string, () => unknown][] => {
      const options = { period: 1_000, [option]: value };
      return [
        [`${option} of once()`, () => locks.once('a', options, () => undefined)],
        [
          `${option} of @OncePer`,
          () => {
            decorated(OncePer('a', options) as MethodDecorator);
          },
        ],
      ];
    }),
    ['leaseTime of an election', () => locks.getElection('a', { leaseTime: value })],
    [
      'leaseTime of @OnLeader',
      () => {
        decorated(OnLeader('a', { leaseTime: value }) as MethodDecorator);
      },
    ],
    ['extend()', () => lease.extend(value)],
    ['within of handOver()', () => lease.handOver({ within: value })],
    ['interval of the board', () => LockBoardModule.forRoot({ interval: value })],
  ])('as %s', async (__, refused) => {
    await expect((async () => await refused())()).rejects.toMatchObject({
      code: 'LOCK_CONFIG',
      message: expect.stringMatching(message),
    });
  });
});
