import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import {
  currentLease,
  type LockAcquireContext,
  type LockHoldContext,
  LockService,
  LockUnavailableError,
  MemoryLockStore,
  TRACING_CHANNELS,
} from '../../lib/index.js';
import { ScriptedStore } from '../doubles/scripted-store.js';
import { abortAfter, until, useVirtualTime } from '../support/virtual-time.js';

useVirtualTime();

type Published<C> = [message: string, context: C][];

const MESSAGES = ['start', 'end', 'asyncStart', 'asyncEnd', 'error'] as const;
/** Ends all subscriptions. */
let ends: (() => unknown)[];
let store: MemoryLockStore;
let locks: LockService;
let other: LockService;

/** Records what is published, and the lock in whose scope the subscriber ran. */
function record<C extends object>(name: string, scopes: (string | undefined)[] = []): Published<C> {
  const published: Published<C> = [];
  for (const message of MESSAGES) {
    const listener = (context: unknown) => {
      published.push([message, context as C]);
      scopes.push(currentLease()?.name);
    };
    subscribe(`tracing:${name}:${message}`, listener);
    ends.push(() => unsubscribe(`tracing:${name}:${message}`, listener));
  }
  return published;
}

const acquisitions = () => record<LockAcquireContext>(TRACING_CHANNELS.acquire);
const holds = () => record<LockHoldContext>(TRACING_CHANNELS.hold);
const ended = <C>(published: Published<C>) =>
  published.filter(([message]) => message === 'asyncEnd').map(([, context]) => context);

beforeEach(() => {
  ends = [];
  store = new MemoryLockStore();
  locks = new LockService({ store });
  other = new LockService({ store, name: 'other' });
});

afterEach(async () => {
  for (const end of ends) end();
  await locks.close();
  await other.close();
});

describe('the channel of acquisitions', () => {
  it('publishes one context for a call, from its start to its answer', async () => {
    const published = acquisitions();
    const results: unknown[] = [];
    const hear = (context: unknown) => results.push((context as LockAcquireContext).result);
    subscribe(`tracing:${TRACING_CHANNELS.acquire}:asyncEnd`, hear);
    const lease = await other.acquire('order:1', { label: 'order' });
    unsubscribe(`tracing:${TRACING_CHANNELS.acquire}:asyncEnd`, hear);
    expect(published.map(([message]) => message)).toEqual(['start', 'end', 'asyncStart', 'asyncEnd']);
    const [[, context]] = published as [[string, LockAcquireContext]];
    expect(published.every(([, each]) => each === context)).toBe(true);
    const { fencingToken } = lease;
    expect(context).toMatchObject({ name: 'order:1', label: 'order', kind: 'lock', instance: 'other' });
    expect(context).toMatchObject({ outcome: 'granted', fencingToken, attempts: 1, commands: 1 });
    expect(context.waited).toBeGreaterThanOrEqual(0);
    expect(results).toEqual([lease]);
    // A subscriber that keeps the context does not keep the lease, which its caller may have thrown away.
    await new Promise(setImmediate);
    expect(context.result).toBeUndefined();
  });

  it('has the kind as the label of a lock that has none, and the names of a multi-lock', async () => {
    const published = acquisitions();
    await locks.getFairLock('f').using(() => 1);
    await locks.getSemaphore('s', 2).using(() => 1);
    await locks.getReadWriteLock('rw').read.using(() => 1);
    await locks.using(['a', 'b'], () => 1);
    expect(ended(published).map(({ name, kind, label }) => [name, kind, label])).toEqual([
      ['f', 'fair', 'fair'],
      ['s', 'semaphore', 'semaphore'],
      ['rw', 'read', 'read'],
      ['a,b', 'multi', 'multi'],
    ]);
    expect(ended(published).map(({ instance }) => instance)).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
  });

  it('tells a hand-off and a nested acquisition from a grant', async () => {
    const published = acquisitions();
    const first = await locks.acquire('a');
    const second = locks.using('a', () => locks.using('a', () => 1));
    await until(async () => (await locks.inspect('a'))?.waiters.local === 1);
    await first.release();
    await second;
    expect(ended(published).map(({ outcome }) => outcome)).toEqual(['granted', 'handed-off', 're-entered']);
    expect(ended(published)[2]).toMatchObject({ attempts: 0, commands: 0 });
  });

  it('tells why a caller has not got the lock', async () => {
    await other.acquire('busy');
    const forced = await locks.runInScope(async () => {
      const lease = await locks.acquire('forced');
      await other.forceRelease('forced');
      await until(() => lease.signal.aborted);
      const published = acquisitions();
      await locks.acquire('forced').catch(() => undefined);
      return ended(published);
    });
    expect(forced).toMatchObject([{ outcome: 'lost', reason: 'deleted' }]);
    const scripted = new ScriptedStore();
    scripted.beforeAcquire = () => {
      throw new LockUnavailableError('away');
    };
    const away = new LockService({ store: scripted });
    const published = acquisitions();
    const failed = [
      locks.acquire('busy', { waitTime: 5 }),
      locks.acquire('busy', { signal: abortAfter(5) }),
      locks.acquire('busy', { maxWaiting: 1 }),
      locks.tryAcquire('busy', { waitTime: 5, maxWaiting: 1 }),
      away.acquire('away', { waitTime: 5 }),
      locks.getSemaphore('forced', 2).using(() => locks.getSemaphore('forced', 3).acquire()),
    ];
    await Promise.allSettled(failed);
    await expect(locks.tryAcquire('busy')).resolves.toBeNull();
    await away.close();
    await away.acquire('away').catch(() => undefined);
    const outcomes = ended(published).map(({ name, outcome, reason }) => [name, outcome, reason]);
    expect(outcomes.filter(([, , reason]) => reason === 'queue-full')).toHaveLength(2);
    expect(outcomes).toHaveLength(9);
    expect(outcomes).toEqual(
      expect.arrayContaining([
        ['busy', 'busy', 'timeout'],
        ['busy', 'aborted', undefined],
        ['away', 'unavailable', undefined],
        ['forced', 'refused', undefined],
        ['away', 'closed', undefined],
      ]),
    );
    // A tryAcquire that finds it busy is no error.
    expect(published.filter(([message]) => message === 'error')).toHaveLength(6);
  });

  it('runs its subscribers in no scope, and its call in the scope of the caller', async () => {
    const scopes: (string | undefined)[] = [];
    record(TRACING_CHANNELS.acquire, scopes);
    const outcomes = ended(acquisitions());
    await locks.using('outer', async () => {
      await locks.using('inner', async () => {
        expect(currentLease()?.name).toBe('inner');
        await (await locks.tryAcquire('outer'))?.release();
        expect(locks.getLock('outer').holdCount()).toBe(1);
      });
      await locks.acquire('other', { signal: AbortSignal.abort() }).catch(() => undefined);
    });
    expect(outcomes).toEqual([]);
    expect(scopes.length).toBeGreaterThan(16);
    expect(new Set(scopes)).toEqual(new Set([undefined]));
  });
});

describe('the channel of holds', () => {
  it('publishes one context from the grant to the release', async () => {
    const published = holds();
    const lease = await other.acquire('a', { label: 'group' });
    expect(published.map(([message]) => message)).toEqual(['start', 'end']);
    await lease.release();
    expect(published.map(([message]) => message)).toEqual(['start', 'end', 'asyncStart', 'asyncEnd']);
    const { owner, fencingToken } = lease;
    expect(ended(published)).toEqual([
      {
        name: 'a',
        label: 'group',
        kind: 'lock',
        instance: 'other',
        owner,
        fencingToken,
        client: owner.replace(/:\d+$/, ''),
        handedOver: undefined,
        renewed: true,
        acquisition: undefined,
        outcome: 'released',
        heldFor: expect.any(Number),
      },
    ]);
  });

  it('publishes a loss once, with its reason, also where the lock is released later', async () => {
    const published = holds();
    const lease = await locks.acquire('a');
    await locks.forceRelease('a');
    await lease.release();
    const messages = published.map(([message]) => message);
    expect(messages).toEqual(['start', 'end', 'error', 'asyncStart', 'asyncEnd']);
    expect(ended(published)).toMatchObject([
      { outcome: 'lost', reason: 'deleted', error: lease.signal.reason },
    ]);
  });

  it('publishes nothing of a hold that began without subscribers', async () => {
    const lease = await locks.acquire('a');
    const published = holds();
    await lease.release();
    expect(published).toEqual([]);
  });
});
