/** How long a multi-lock takes, waits and holds a part, in virtual time: its pauses are out of reach of fake timers. */
import { describe, expect, it } from '@jest/globals';
import type { Lock, LockService } from '../../lib/index.js';
import type { AcquireReply, AcquireRequest, LockStore } from '../../lib/store/index.js';
import { times } from '../support/tier.js';
import { inWorld, type Stage } from '../world/index.js';

const silent = () => new Promise<never>(() => undefined);

interface Place extends Stage {
  /** One store in memory, and two services that use it as two processes would. */
  readonly store: LockStore;
  readonly locks: LockService;
  readonly others: LockService;
  /** A service with a store of its own, which answers no acquisition. */
  readonly far: LockService;
  readonly events: readonly { type: string }[];
}

const inMemory = (seed: number, script: (place: Place) => Promise<unknown>) => () =>
  inWorld(seed, (stage) => {
    let store: LockStore | undefined;
    const one = stage.process({ store: (own) => (store = new own.MemoryLockStore()) });
    const { MemoryLockStore } = one.package;
    const mute = Object.assign(new MemoryLockStore(), { acquire: silent, acquireAll: silent });
    const [others, far] = [store!, mute].map((place) => one.serve({ store: () => place }));
    const { locks, events } = one;
    return script({ ...stage, store: store!, locks, others: others!, far: far!, events });
  });

/** Lets an acquisition be answered by this. */
function onAcquire(
  store: LockStore,
  change: (request: AcquireRequest, reply: AcquireReply) => unknown,
): void {
  const acquire = store.acquire.bind(store);
  store.acquire = async (request) => {
    const reply = await acquire(request);
    await change(request, reply);
    return reply;
  };
}

/** Callers that take the locks in turn, so that a multi-lock takes them in order. @returns what ends that */
function crowd({ others, pass }: Place): () => Promise<unknown> {
  let stopped = false;
  const loops = ['a', 'b'].flatMap((name) =>
    [1, 2, 3].map(async () => {
      while (!stopped) await others.getFairLock(name).using(() => pass(50));
    }),
  );
  return () => ((stopped = true), Promise.all(loops));
}

/** How long an acquisition with a wait time of 300 ms takes to fail. */
async function failing({ now }: Place, lock: Lock, code: string): Promise<number> {
  const began = now();
  await expect(lock.acquire({ waitTime: 300 })).rejects.toMatchObject({ code });
  return now() - began;
}

describe('a multi-lock', () => {
  it(
    'keeps what it holds from others only for a moment where another store does not answer',
    inMemory(1, async ({ locks, others, far, now, pass }) => {
      const gone = new AbortController();
      const lock = locks.getMultiLock([locks.getLock('a'), far.getLock('x'), far.getLock('y')]);
      const waiting = lock.acquire({ waitTime: Infinity, signal: gone.signal });
      waiting.catch(() => undefined);
      await pass(50);
      const waits: number[] = [];
      for (let n = 0; n < 20; n++) {
        const asked = now();
        await (await others.acquire('a', { waitTime: 5_000 })).release();
        waits.push(now() - asked);
        await pass(20);
      }
      expect(Math.max(...waits)).toBeLessThan(3_000);
      gone.abort();
      await expect(waiting).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
    }),
  );

  it.each(['plain', 'fair'] as const)(
    'whose release of a part gets no answer ends its wait after the wait time, for %s locks',
    (kind) =>
      inMemory(2, async (place) => {
        const { store, locks, others, pass } = place;
        const lockOf = (of: LockService, name: string) =>
          kind === 'fair' ? of.getFairLock(name) : of.getLock(name);
        const last = await lockOf(others, 'b').acquire();
        const group = locks.getMultiLock([lockOf(locks, 'a'), lockOf(locks, 'b')]);
        const took = failing(place, group, 'LOCK_TIMEOUT');
        await pass(20);
        // The fair lock "a" was free, and is given back before. The plain one becomes busy before "b" is released.
        await lockOf(others, 'a').acquire();
        const released = last.release();
        store.release = silent;
        await released;
        expect(await took).toBeLessThan(2_000);
      })(),
  );

  it.each<[string, (place: Place) => Lock]>([
    [
      'a lock of another kind',
      ({ locks }) => locks.getMultiLock([locks.getLock('a'), locks.getFairLock('b')]),
    ],
    [
      'a lock of another service',
      ({ locks, others }) => locks.getMultiLock([locks.getLock('a'), others.getLock('b')]),
    ],
  ])('whose last member gets no answer ends its wait after the wait time, for %s', (_, lockOf) =>
    inMemory(3, async (place) => {
      onAcquire(place.store, ({ name }) => (name === 'b' ? silent() : undefined));
      expect(await failing(place, lockOf(place), 'LOCK_UNAVAILABLE')).toBeLessThan(5_000);
      expect(await place.others.acquire('a')).toMatchObject({ held: true });
    })(),
  );

  it.each([
    ['of a given length', { leaseTime: 1_000 }, 940],
    ["of the service's length", { renew: false }, 29_650],
  ])(
    'has its whole fixed lease %s, however long some members had to be held before the last was there',
    (_, options, least) =>
      inMemory(6, async (place) => {
        const { locks } = place;
        const leave = crowd(place);
        const lock = locks.getMultiLock([locks.getFairLock('a'), locks.getFairLock('b')]);
        for (let n = 0; n < 3; n++) {
          const lease = await lock.acquire(options);
          // Each was held for a queue of 100 ms and more before the other was granted.
          expect(lease.remainingTime()).toBeGreaterThan(least);
          await lease.release();
        }
        await leave();
      })(),
  );
});

it('a multi-lock that is aborted between two of its attempts takes nothing any more', async () => {
  await inWorld(1, async ({ process, pass }) => {
    const holder = process();
    const { locks } = process();
    const TRIES = times(40, 100);
    for (let n = 0; n < TRIES; n++) {
      const [a, b] = ['a', 'b'].map((name) => `${name}:${String(n)}`) as [string, string];
      const first = await holder.locks.acquire(b);
      const controller = new AbortController();
      const asked = locks
        .getMultiLock([locks.getLock(a), locks.getLock(b)])
        .acquire({ signal: controller.signal, waitTime: 60_000 });
      const refused = expect(asked).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
      await pass(10);
      // It gets b now, finds a busy, gives b back, and sleeps for up to 4 ms before its next attempt.
      const second = await holder.locks.acquire(a);
      await first.release();
      await pass((n * 8) / TRIES);
      controller.abort();
      await refused;
      await second.release();
      await pass(50);
      for (const name of [a, b]) expect(await holder.locks.inspect(name)).toBeNull();
    }
  });
});
