import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type Lease, LockService, LockUnavailableError } from '../../lib/index.js';
import { ScriptedStore } from '../doubles/scripted-store.js';
import { pass, until, useVirtualTime } from '../support/virtual-time.js';

useVirtualTime();

let store: ScriptedStore;
let locks: LockService;
let other: LockService;

/** What a caller gets that waits for longer than any test takes. */
const waitFor = (options: object = {}): Promise<Lease> =>
  locks.acquire('a', { waitTime: 60_000, ...options });

/** ms after a grant for which a process may pass the lock on to its own callers. */
const HANDOFF_TIME = 1_000;

/** Long before a renewal, at a third of the lease of 30 s, would tell. */
const SOON = 5_000;

const lost = ({ signal }: Lease): Promise<boolean> =>
  Promise.race([
    new Promise<boolean>((resolve) => {
      const tell = () => {
        resolve(true);
      };
      if (signal.aborted) tell();
      else signal.addEventListener('abort', tell);
    }),
    pass(SOON, false),
  ]);

beforeEach(() => {
  store = new ScriptedStore();
  [locks, other] = [new LockService({ store }), new LockService({ store })];
});

afterEach(async () => {
  for (const service of [locks, other]) await service.onApplicationShutdown();
});

describe('a hold that was taken away soon after its grant', () => {
  beforeEach(() => {
    // Only those who wait hear, so that they have to find out by themselves.
    store.subscribeToQueue = () => Promise.reject(new LockUnavailableError(undefined, {}));
    store.hasQueues = false;
    [locks, other] = [new LockService({ store }), new LockService({ store })];
  });

  it('is found although the message could be that of the release before it', async () => {
    const before = await other.acquire('a');
    const [first, second] = [waitFor(), waitFor()];
    await pass(20);
    await before.release();
    const lease = await first;
    await store.forceRelease('a');
    const present = await other.acquire('a');
    expect(await lost(lease)).toBe(true);
    // Its callers wait as all others do.
    expect(await Promise.race([second, pass(300, 'waiting')])).toBe('waiting');
    expect(present.held).toBe(true);
    await lease.release();
    await present.release();
    expect((await second).owner).not.toBe(lease.owner);
  });

  it('is found although the message could not be received', async () => {
    const lease = await locks.acquire('a');
    await store.forceRelease('a');
    await other.acquire('a');
    const waiting = waitFor();
    expect(await lost(lease)).toBe(true);
    expect(await Promise.race([waiting, pass(300, 'waiting')])).toBe('waiting');
    await lease.release();
    await other.forceRelease('a');
    await waiting;
  });
});

describe('a hand-off', () => {
  it('does not rely on an old answer of the store, though no message tells that it has changed', async () => {
    store.subscribeToReleases = () => Promise.resolve({ active: true, close: () => undefined });
    store.subscribeToQueue = () => Promise.reject(new LockUnavailableError(undefined, {}));
    const lease = await locks.acquire('a');
    const waiting = waitFor({ waitTime: 20_000 });
    // The one look at a hold for which messages have just been asked for is over.
    await pass(200);
    await store.forceRelease('a');
    const present = await other.acquire('a');
    await pass(HANDOFF_TIME);
    await lease.release();
    expect(await Promise.race([waiting, pass(300, 'waiting')])).toBe('waiting');
    expect(present.held).toBe(true);
    waiting.catch(() => undefined);
  });

  it('leaves a lock to a process that waits in the queue much sooner', async () => {
    const standing = (many: number) =>
      until(async () => ((await store.inspect('a'))?.queue.length ?? 0) === many);
    const theirs = await other.acquire('a');
    const [mine, last] = [waitFor(), waitFor()];
    await standing(1);
    const third = new LockService({ store });
    const behind = third.acquire('a', { waitTime: 60_000 });
    await standing(2);
    await theirs.release();
    const lease = await mine;
    // Far from a second after its grant.
    await pass(50);
    await lease.release();
    const next = await behind;
    expect(await Promise.race([last, pass(50, 'waiting')])).toBe('waiting');
    await next.release();
    expect((await last).owner).not.toBe(lease.owner);
    await third.onApplicationShutdown();
  });

  it('goes to callers that come back at once', async () => {
    // An answer takes its way.
    store.beforeAcquire = async () => {
      await pass(1);
    };
    const turns = async () => {
      for (let n = 0; n < 20; n++) await locks.using('a', () => undefined);
    };
    store.calls.acquire = store.calls.handOver = store.calls.release = 0;
    await Promise.all([turns(), turns()]);
    const { acquire, handOver, release } = store.calls;
    // 40 acquisitions in rows of 17.
    expect(acquire + handOver + release).toBeLessThanOrEqual(8);
  });

  it('leaves a lock to other processes after a time, however few callers it went to', async () => {
    const lease = await locks.acquire('a');
    const waiting = waitFor();
    await pass(HANDOFF_TIME + 10); // timers may be early
    await lease.release();
    expect((await waiting).owner).not.toBe(lease.owner);
  });

  it.each([
    ['a longer lease than its successor asks for', (lease: Lease) => lease.extend(600_000)],
    [
      'one that may be longer, because the answer was lost',
      async (lease: Lease) => {
        store.onRenew = () => Promise.reject(new LockUnavailableError('a', { cause: new Error('lost') }));
        await lease.extend(600_000).catch(() => undefined);
        store.onRenew = () => undefined;
      },
    ],
  ])('does not pass on %s', async (_, extend) => {
    const lease = await locks.acquire('a');
    const waiting = waitFor();
    await extend(lease);
    await lease.release();
    const next = await waiting;
    expect(next.owner).not.toBe(lease.owner);
    expect(next.remainingTime()).toBeLessThanOrEqual(30_000);
    expect(await locks.getLock('a').remainingTime()).toBeLessThanOrEqual(30_000);
  });

  it('passes on a lease that was extended by no more than that', async () => {
    const lease = await locks.acquire('a');
    const waiting = waitFor();
    await lease.extend(30_000);
    await lease.release();
    expect((await waiting).owner).toBe(lease.owner);
  });
});
