import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from '@jest/globals';
import {
  type Lease,
  type LockEvent,
  LockLostError,
  type LockService,
  LockUnavailableError,
} from '../../../../lib/index.js';
import { createStore } from '../../../support/store.js';
import type { LockStore } from '../../../../lib/store/lock-store.js';
import { FAIR, type Kind, lockOf, PLAIN, queued, READ, semaphore, WRITE } from '../../../queue/kinds.js';
import { TestEnvironment } from '../../../support/test-environment.js';
import { until } from '../../../scenarios/until.js';
import { isFence, lockKeys } from '../../../support/keys.js';
import { serverOfEach } from '../../../support/test-servers.js';

const LEASE = 12_000;
const MINUTE = 60_000;
const QUEUED: [string, Kind][] = [
  ['fair', FAIR],
  ['write', WRITE],
  ['read', READ],
  ['semaphore', semaphore(2)],
];
const KINDS: [string, Kind][] = [['plain', PLAIN], ...QUEUED];

const environment = TestEnvironment.ofEach();
const server = serverOfEach();
let locks: LockService;
let other: LockService;
let store: LockStore;
let events: LockEvent[];

beforeEach(async () => {
  locks = environment.service({ connection: server.url, leaseTime: LEASE });
  other = environment.service({ connection: server.url, leaseTime: LEASE });
  store = createStore({ connection: server.url }, { keyPrefix: 'lock:', leaseTime: LEASE });
  environment.add(() => store.close());
  events = [];
  locks.events$.subscribe((event) => events.push(event));
});

/** Whatever needs room is refused from here on. */
const fill = () => server.client().config('SET', 'maxmemory', '1');
const ttl = (name: string) => server.client().pttl(`lock:${name}`);

const expectRefused = async (attempt: Promise<unknown>): Promise<void> => {
  const error: unknown = await attempt.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(LockUnavailableError);
  expect(error).toMatchObject({
    effect: 'refused',
    permanent: false,
    cause: { message: expect.stringMatching(/OOM/) },
  });
};

describe('With the memory of Redis full', () => {
  it('what is held is renewed, of each kind by itself and of all together', async () => {
    const lone = KINDS.map(([name, kind]) => {
      // A batch has one fate, so each of these is the only one of its own.
      const service = environment.service({ connection: server.url, leaseTime: LEASE });
      service.events$.subscribe((event) => events.push(event));
      return lockOf(service, `lone-${name}`, kind).acquire();
    });
    // The queued ones first: what comes after a first write is not refused any more.
    const together = [...QUEUED, ...KINDS].map(([name, kind], n) =>
      lockOf(locks, `${String(n)}-${name}`, kind).acquire(),
    );
    const leases: Lease[] = await Promise.all([...lone, ...together]);
    await fill();
    await sleep(LEASE + 1_000);
    expect(leases.filter((lease) => !lease.held).map(({ name }) => name)).toEqual([]);
    for (const { name } of leases) expect(await ttl(name)).toBeGreaterThan(0);
    expect(events.filter(({ type }) => type === 'lost')).toEqual([]);
  });

  describe.each(KINDS)('%s:', (_, kind) => {
    it('what is held is extended and released', async () => {
      const lease = await lockOf(locks, 'held', kind).acquire();
      await fill();
      await lease.extend(MINUTE);
      expect(await ttl('held')).toBeGreaterThan(MINUTE / 2);
      await lease.release();
      expect(await locks.inspect('held')).toBeNull();
      expect(events.map(({ type }) => type)).toEqual(['acquired', 'released']);
    });

    it('one that is kept beyond its release is kept, and has no holder', async () => {
      const lock = lockOf(locks, 'held', kind);
      const owner = await lock.using({ minHoldTime: MINUTE }, async (lease) => {
        await fill();
        return lease.owner;
      });
      expect(await ttl('held')).toBeGreaterThan(LEASE);
      expect((await locks.inspect('held'))?.holders).toMatchObject([{ owner: `kept:${owner}` }]);
      expect(events.map(({ type }) => type)).toEqual(['acquired', 'released']);
    });

    it('one is taken away by force', async () => {
      const lease = await lockOf(locks, 'held', kind).acquire();
      await fill();
      expect(await locks.forceRelease('held')).toBe(true);
      expect(lease.signal.reason).toBeInstanceOf(LockLostError);
      expect(await locks.inspect('held')).toBeNull();
    });

    it('a new one is refused with the reason, and leaves nothing behind', async () => {
      await (await locks.acquire('warm-up')).release();
      await fill();
      await expectRefused(lockOf(locks, 'new', kind).acquire({ waitTime: 0 }));
      await expectRefused(lockOf(locks, 'new', kind).acquire({ waitTime: 1_000 }));
      // What had been taken would be given back by a release.
      await until(async () => (await locks.health()).nodes.length > 0);
      expect((await server.client().keys('*')).filter((key) => key.includes('new'))).toEqual([]);
    });
  });

  it('a waiter in a queue keeps its entry, and gets its turn', async () => {
    const holders = new Map<string, Lease[]>();
    for (const [name, kind] of QUEUED) {
      const permits = Array.from({ length: kind.permits ?? 1 }, () =>
        lockOf(locks, name, kind === READ ? WRITE : kind).acquire(),
      );
      holders.set(name, await Promise.all(permits));
    }
    const waiting = QUEUED.map(([name, kind]) => lockOf(other, name, kind).acquire({ waitTime: 60_000 }));
    for (const [name] of QUEUED) await queued(locks, name, 1);
    await fill();
    // Each looks once a lease, and the holds are renewed meanwhile.
    await sleep(LEASE + 1_000);
    for (const [name] of QUEUED) expect((await locks.inspect(name))?.queue).toHaveLength(1);
    for (const [lease] of holders.values()) await lease?.release();
    const leases = await Promise.all(waiting);
    // The claims on which they were let in have been confirmed.
    await sleep(1_500);
    for (const lease of leases) expect([lease.held, (await ttl(lease.name)) > 0]).toEqual([true, true]);
    for (const lease of [...leases, ...[...holders.values()].flat()]) await lease.release();
    expect(await lockKeys(server.client())).toEqual([]);
  });

  it.each<[string, (service: LockService) => Promise<Lease>]>([
    ['plain locks', (service) => service.acquire(['a', 'b', 'c'])],
    [
      'all kinds',
      (service) => service.getMultiLock(KINDS.map(([name, kind]) => lockOf(service, name, kind))).acquire(),
    ],
  ])('a group of %s is renewed, extended and released, and no new one is granted', async (_, acquire) => {
    const lease = await acquire(locks);
    await fill();
    await sleep(LEASE + 1_000);
    expect(lease.held).toBe(true);
    await lease.extend(MINUTE);
    expect(lease.remainingTime()).toBeGreaterThan(MINUTE / 2);
    await lease.release();
    expect(await lockKeys(server.client())).toEqual([]);
    await expectRefused(locks.acquire(['d', 'e'], { waitTime: 0 }));
    expect((await lockKeys(server.client())).filter((key) => !isFence(key))).toEqual([]);
  });
});
