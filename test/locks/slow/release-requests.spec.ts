import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import {
  currentLease,
  type Lease,
  type Lock,
  type LockEvent,
  type LockModuleOptions,
  type LockService,
  MemoryLockStore,
} from '../../../lib/index.js';
import { until } from '../../scenarios/until.js';
import { QuorumEnvironment } from '../../stores/quorum/quorum-environment.js';
import { clusterOfAll } from '../../support/test-servers.js';

const environment = QuorumEnvironment.forAll(3);
const cluster = clusterOfAll();
const memory = new MemoryLockStore();

const TOPOLOGIES: [string, boolean, () => Partial<LockModuleOptions>][] = [
  ['memory', true, () => ({ store: memory })],
  ['Redis', true, () => ({ connection: environment.node(0).url })],
  ['a cluster', true, () => ({ connection: { cluster: cluster.addresses } })],
  ['three nodes', false, () => ({ nodes: environment.urls })],
];

const messageOf = (lease: Lease | undefined): string =>
  lease?.releaseRequested.aborted === true ? (lease.releaseRequested.reason as Error).message : 'not asked';

describe.each(TOPOLOGIES)('A request to release a lock, on %s', (_, queues, options) => {
  let holder: LockService;
  let asker: LockService;
  let events: LockEvent[];
  let count = 0;
  let name: string;

  beforeAll(async () => {
    holder = environment.service({ ...options(), label: 'worker-1' });
    asker = environment.service({ ...options(), label: 'console-1' });
    holder.events$.subscribe((event) => events.push(event));
    events = [];
    // A process receives messages from the first hold on that lasts for a second.
    await holder.using('warm', () => until(async () => (await asker.requestRelease('warm')) === 1));
  });

  beforeEach(() => {
    name = `asked:${String(++count)}`;
    events = [];
  });

  const requests = () => events.filter(({ type }) => type === 'release-requested');

  it('tells the holder which service asks and its reason, and takes nothing away', async () => {
    const lease = await holder.acquire(name, { label: 'orders' });
    const { owner } = lease;
    expect(lease.releaseRequested.aborted).toBe(false);
    expect(await asker.requestRelease(name, { reason: 'deploy\nof "2"' })).toBe(1);
    await until(() => lease.releaseRequested.aborted);
    expect(messageOf(lease)).toBe(
      String.raw`Asked to release the lock "${name}" by "console-1": "deploy\nof \"2\""`,
    );
    const request = expect.any(String);
    const asked = { name, label: 'orders', owner, request, holders: 1, by: 'console-1' };
    const event = { type: 'release-requested', ...asked };
    expect(requests()).toEqual([{ ...event, reason: 'deploy\nof "2"' }]);
    expect([lease.held, lease.signal.aborted]).toEqual([true, false]);
    await lease.extend(20_000);

    expect(await asker.requestRelease(name)).toBe(1);
    await until(() => requests().length === 2);
    expect(requests()[1]).toEqual({ ...event, reason: undefined });
    expect(messageOf(lease)).toContain('deploy');
    await lease.release();
    expect(await asker.requestRelease(name)).toBe(0);
    const next = await holder.acquire(name);
    expect(messageOf(next)).toBe('not asked');
    await next.release();
  });

  it('reaches each lease of a hold, those of a multi-lock, and those of callbacks', async () => {
    const [one, two] = [`{${name}}:1`, `{${name}}:2`];
    const group = await holder.acquire([one, two]);
    expect(await asker.requestRelease(two)).toBe(1);
    await until(() => group.releaseRequested.aborted);
    expect(messageOf(group)).toContain(`"${two}"`);
    expect(requests()).toMatchObject([{ name: two }]);
    await group.release();

    await holder.using(name, async (outer) => {
      const inner = await holder.acquire(name);
      expect(await asker.requestRelease(name)).toBe(1);
      await until(() => outer.releaseRequested.aborted);
      const late = await holder.acquire(name);
      expect([outer, inner, late, currentLease()].map(messageOf)).toEqual(
        Array(4).fill(`Asked to release the lock "${name}" by "console-1"`),
      );
      expect(requests()).toHaveLength(2);
      await Promise.all([inner.release(), late.release()]);
    });
  });

  it('names the service that has taken a lock by force, and its reason', async () => {
    const taken: LockEvent[] = [];
    const subscription = asker.events$.subscribe((event) => taken.push(event));
    const lease = await holder.acquire(name);
    expect(await asker.forceRelease(name, { reason: 'stuck' })).toBe(true);
    await until(() => lease.signal.aborted);
    const forced = { by: 'console-1', reason: 'stuck' };
    expect(lease.signal.reason).toMatchObject({ reason: 'deleted', forced });
    expect((lease.signal.reason as Error).message).toContain(', taken away by "console-1": "stuck"');
    expect(events).toContainEqual(expect.objectContaining({ type: 'lost', name, forced }));
    expect(taken).toEqual([{ type: 'force-released', name, reason: 'stuck' }]);
    taken.length = 0;
    expect(await asker.forceRelease(name)).toBe(false);
    expect(taken).toEqual([]);
    subscription.unsubscribe();
  });

  if (!queues) return;

  it('reaches the holders of all kinds', async () => {
    const sides = holder.getReadWriteLock(`${name}:sides`);
    const written = holder.getReadWriteLock(`${name}:written`);
    const permits = holder.getSemaphore(`${name}:permits`, 3);
    const locks: Lock[] = [
      ...[holder.getFairLock(`${name}:fair`), sides.read, sides.read],
      ...[written.write, permits, permits],
    ];
    const leases = await Promise.all(locks.map((lock) => lock.acquire()));
    const counts = ['fair', 'sides', 'written', 'permits'].map((kind) =>
      asker.requestRelease(`${name}:${kind}`, { reason: kind }),
    );
    expect(await Promise.all(counts)).toEqual([1, 2, 1, 2]);
    await until(() => leases.every(({ releaseRequested }) => releaseRequested.aborted));
    expect(leases.map(messageOf).map((message) => /: "(\w+)"$/.exec(message)?.[1])).toEqual([
      ...['fair', 'sides', 'sides'],
      ...['written', 'permits', 'permits'],
    ]);
    await Promise.all(leases.map((lease) => lease.release()));
  });
});
