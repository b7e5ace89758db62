import { beforeEach, describe, expect, it } from '@jest/globals';
import type { LockEvent, LockService } from '../../../../lib/index.js';
import type { LockStore, QueueTerms } from '../../../../lib/store/lock-store.js';
import { createStore } from '../../../support/store.js';
import { until } from '../../../scenarios/until.js';
import { lockKeys } from '../../../support/keys.js';
import type { RedisServer } from '../../../support/redis-server.js';
import { MASTER_ARGS, startReplica } from '../../../support/replicas.js';
import { TcpProxy } from '../../../support/tcp-proxy.js';
import { TestEnvironment } from '../../../support/test-environment.js';
import { FAIR_TERMS } from '../foreign.js';
import { serverOfEach } from '../../../support/test-servers.js';

const LEASE = 60_000;
const environment = TestEnvironment.ofEach();
const server = serverOfEach({ args: MASTER_ARGS });

type Ask = (store: LockStore) => Promise<unknown>;

const HOLDER = 'holder:1';
const OTHER = 'other:1';
const SEMAPHORE: QueueTerms = { kind: 'semaphore', mode: 'shared', capacity: 2 };
const asking = (terms: QueueTerms) => ({ ...terms, entry: undefined, ownWriteHold: undefined });

const acquire = (store: LockStore, name: string, owner: string, terms?: QueueTerms) =>
  store.acquire({ name, owner, leaseTime: LEASE, queue: terms && asking(terms) });
const renew = async (store: LockStore, name: string, owner: string, leaseTime: number) =>
  (await Promise.all(store.renew([{ name, owner, leaseTime }])))[0];
const transfer = (store: LockStore, name: string, owner: string, queue?: QueueTerms) =>
  store.transfer?.({ name, owner, next: 'next:1', leaseTime: LEASE, leastToken: 0, queue }) ??
  Promise.resolve();
const remember = (store: LockStore, owner: string) =>
  store.periods?.remember({ name: 'plain', owner, period: LEASE }) ?? Promise.resolve();
const keep = (store: LockStore, owner: string) => store.release({ name: 'plain', owner, keepFor: LEASE });

/** What does not depend on what the server has. */
const OF_ANY: [string, Ask][] = [
  ['a renewal of an owner without the lock', (store) => renew(store, 'plain', OTHER, LEASE)],
  ['a renewal of an owner without the fair lock', (store) => renew(store, 'fair', OTHER, LEASE)],
  ['a look of the holder', (store) => renew(store, 'plain', HOLDER, 0)],
  ['a look of the holder of a fair lock', (store) => renew(store, 'fair', HOLDER, 0)],
  ['a transfer', (store) => transfer(store, 'plain', OTHER)],
  ['a transfer of a fair lock', (store) => transfer(store, 'fair', OTHER, FAIR_TERMS)],
  ['a note that the work is done', (store) => remember(store, OTHER)],
  ['a release that keeps the lock', (store) => keep(store, OTHER)],
];

/** Begins with a release, which changes nothing. */
const FORCED: [string, Ask] = [
  'a forced release of the side without a holder',
  (store) => store.forceRelease('fair', 'shared'),
];

const OF_TAKEN: [string, Ask][] = [
  ...OF_ANY,
  ['an acquisition', (store) => acquire(store, 'plain', OTHER)],
  [
    'an acquisition of several',
    (store) => store.acquireAll({ names: ['free', 'plain'], owner: OTHER, leaseTime: LEASE }),
  ],
  ['an acquisition of a fair lock', (store) => acquire(store, 'fair', OTHER, FAIR_TERMS)],
  ['an acquisition of a plain lock as a fair one', (store) => acquire(store, 'plain', OTHER, FAIR_TERMS)],
  ['an acquisition of a fair lock as a semaphore', (store) => acquire(store, 'fair', OTHER, SEMAPHORE)],
  ['an acquisition of a fair lock as a plain one', (store) => acquire(store, 'fair', OTHER)],
  [
    'a transfer as a lock of another kind',
    (store) => transfer(store, 'semaphore', HOLDER, { ...SEMAPHORE, capacity: 3 }),
  ],
];

const OF_EMPTY: [string, Ask][] = [
  ...OF_ANY,
  ['a renewal of the holder', (store) => renew(store, 'plain', HOLDER, LEASE)],
  ['a renewal of a fair lock', (store) => renew(store, 'fair', HOLDER, LEASE)],
  ['a forced release', (store) => store.forceRelease('plain')],
  FORCED,
];

/** A store whose server has a plain lock, a fair lock and a semaphore with a holder each. */
async function openStore(connection = server.url): Promise<LockStore> {
  const store = createStore({ connection }, { keyPrefix: 'lock:', leaseTime: LEASE });
  environment.add(() => store.close());
  await acquire(store, 'plain', HOLDER);
  await acquire(store, 'fair', HOLDER, FAIR_TERMS);
  await acquire(store, 'semaphore', HOLDER, SEMAPHORE);
  return store;
}

/** The server follows a master that it does not reach, and keeps what it has. */
const demote = async () => {
  await server.client().replicaof('127.0.0.1', 1);
};

const REFUSED = {
  name: 'LockUnavailableError',
  effect: 'refused',
  cause: { message: expect.stringContaining('READONLY ') },
};

describe('A server that has become a replica', () => {
  it.each([...OF_TAKEN, FORCED])('gives no answer from what it had: %s', async (_, ask) => {
    const store = await openStore();
    await demote();
    await expect(ask(store)).rejects.toMatchObject(REFUSED);
  });

  it.each(OF_EMPTY)('gives no answer from having nothing: %s', async (_, ask) => {
    const store = await openStore();
    await server.client().flushall();
    await demote();
    await expect(ask(store)).rejects.toMatchObject(REFUSED);
  });

  it('refuses each of the calls that are sent as one command', async () => {
    const store = await openStore();
    await demote();
    const calls = ['plain', 'plain', 'fair'].map((name) =>
      acquire(store, name, OTHER, name === 'fair' ? FAIR_TERMS : undefined),
    );
    for (const call of calls) await expect(call).rejects.toMatchObject(REFUSED);
  });
});

describe('A master that takes no writes for now', () => {
  it.each(OF_TAKEN)('answers as before: %s', async (_, ask) => {
    const store = await openStore();
    const answer = () => ask(store).then(JSON.stringify, (error: unknown) => (error as Error).name);
    const withoutTimes = (text: string) => text.replaceAll(/\d+/g, '');
    const before = withoutTimes(await answer());
    await server.client().config('SET', 'min-replicas-to-write', '1');
    expect(withoutTimes(await answer())).toBe(before);
  });
});

describe('A write that changes nothing', () => {
  it('is sent once for many looks, and for none if a lock is renewed with them', async () => {
    const store = await openStore();
    const renewAll = async (leaseTime: number) => {
      await server.resetCommandCalls();
      const looks = ['plain', 'fair', 'free'].map((name) => ({ name, owner: HOLDER, leaseTime: 0 }));
      await Promise.all(store.renew([{ name: 'semaphore', owner: HOLDER, leaseTime }, ...looks]));
      const { hdel = 0, zrem = 0 } = await server.commandCalls();
      return hdel + zrem;
    };
    expect(await renewAll(0)).toBe(1);
    expect(await renewAll(LEASE)).toBe(0);
  });
});

describe('A service whose address leads to a replica for a while', () => {
  /** ms; a lease is renewed, or looked at, after a third. */
  const SHORT = 20_000;
  let replica: RedisServer;
  let proxy: TcpProxy;
  let locks: LockService;
  let events: LockEvent[];

  beforeEach(async () => {
    replica = await startReplica(server);
    environment.add(() => replica.stop());
    proxy = await TcpProxy.start(server.port);
    environment.add(() => proxy.stop());
    locks = environment.service({ connection: proxy.url, leaseTime: SHORT });
    events = [];
    locks.events$.subscribe((event) => events.push(event));
  });

  /** The replica loses its master and all that it had, as if it had been started again. */
  const leadAstray = async () => {
    await replica.client().replicaof('NO', 'ONE');
    await replica.client().flushall();
    await replica.client().replicaof('127.0.0.1', 1);
    proxy.leadTo(replica.port);
    proxy.cut();
    await until(() => events.some(({ type }) => type === 'reconnected'));
  };

  it('keeps its leases, and its connection looks for the master', async () => {
    const renewed = await locks.acquire('renewed');
    const fixed = await locks.acquire('fixed', { leaseTime: SHORT });
    await leadAstray();
    events = [];
    await until(() => events.some(({ type }) => type === 'disconnected'));
    proxy.leadTo(server.port);
    proxy.cut();
    await until(async () => (await server.client().pttl('lock:renewed')) > SHORT - 1_000);
    expect([renewed.held, fixed.held]).toEqual([true, true]);
    await Promise.all([renewed.release(), fixed.release()]);
    expect(events.filter(({ type }) => type === 'lost')).toEqual([]);
    expect(await lockKeys(server.client())).toEqual([]);
  });
});
