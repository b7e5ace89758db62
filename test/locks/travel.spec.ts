import { beforeEach, describe, expect, it } from '@jest/globals';
import {
  isLockClosedError,
  isLockConfigError,
  isLockLostError,
  isLockUnavailableError,
  type Lease,
  type Lock,
  type LockEvent,
  LockLostError,
  LockUnavailableError,
  type LockService,
  MemoryLockStore,
} from '../../lib/index.js';
import type { TransferReply, TransferRequest } from '../../lib/store/index.js';
import { pass, until, useVirtualTime } from '../support/virtual-time.js';
import { servicesOfEach } from '../support/services.js';

useVirtualTime();

/** What becomes of a transfer: carried out and answered, perhaps late, not carried out, or carried out without an answer. */
type Fate = 'answered' | 'refused' | 'lost before' | 'lost after' | 'permanent' | 'slow' | 'late';

/** ms */
const SLOW = 50;
const LATE = 1_500;

class FaultyStore extends MemoryLockStore {
  readonly fates: Fate[] = [];
  readonly requests: TransferRequest[] = [];

  override async transfer(request: TransferRequest): Promise<TransferReply> {
    this.requests.push(request);
    const fate = this.fates.shift() ?? 'answered';
    const effect = fate === 'refused' ? 'refused' : 'unknown';
    const cause = new Error(fate);
    const failure = new LockUnavailableError(request.name, {
      cause,
      effect,
      permanent: fate === 'permanent',
    });
    if (fate === 'late') await pass(LATE);
    if (fate === 'slow') await pass(SLOW);
    if (fate === 'answered' || fate === 'slow' || fate === 'late') return await super.transfer(request);
    if (fate === 'lost after') await super.transfer(request);
    throw failure;
  }
}

let store: FaultyStore;
let a: LockService;
let b: LockService;
let events: LockEvent[];
const { open: service } = servicesOfEach(() => ({ store, leaseTime: 1_000, waitTime: 2_000 }));

beforeEach(() => {
  events = [];
  store = new FaultyStore();
  [a, b] = [service(), service()];
  a.events$.subscribe((event) => events.push(event));
});

const failure = async (promise: Promise<unknown>): Promise<unknown> =>
  await promise.then(
    () => undefined,
    (error: unknown) => error,
  );
const reasonOf = async (promise: Promise<unknown>) => {
  const error = await failure(promise);
  return isLockLostError(error) ? error.reason : String(error);
};
const holders = async (name: string) => (await b.inspect(name))?.holders.map(({ owner }) => owner) ?? [];

const KINDS: Record<string, (locks: LockService) => Lock> = {
  plain: (locks) => locks.getLock('job'),
  fair: (locks) => locks.getFairLock('job'),
  read: (locks) => locks.getReadWriteLock('job').read,
  write: (locks) => locks.getReadWriteLock('job').write,
  semaphore: (locks) => locks.getSemaphore('job', 2),
};

it('a plain lock travels with its queue, so that its release wakes the next waiter', async () => {
  const ticket = await (await a.acquire('job')).handOver();
  await (await b.resume(ticket)).release();
  expect(store.requests.at(-1)?.queue).toEqual({ kind: 'lock', mode: 'exclusive', capacity: 1 });
});

describe('a lease that travels', () => {
  it.each(Object.keys(KINDS))(
    'goes on in another process, under a greater token, renewed there (%s)',
    async (kind) => {
      const lockOf = KINDS[kind]!;
      const lease = await lockOf(a).acquire();
      const { owner } = lease;
      const ticket = await lease.handOver();
      expect(ticket).toMatch(/^[\w-]+$/);
      expect([lease.held, lease.signal.aborted, lease.remainingTime()]).toEqual([false, false, 0]);
      expect(a.leases()).toEqual([]);
      expect(() => {
        lease.assertHeld();
      }).toThrow(LockLostError);
      await lease.release();
      expect(await reasonOf(lease.handOver())).toBe('released');
      expect(await holders('job')).not.toContain(owner);

      const resumed = await b.resume(ticket);
      expect(resumed.name).toBe('job');
      expect(resumed.label).toBe(lease.label);
      expect(resumed.held).toBe(true);
      expect(resumed.fencingToken).toBeGreaterThan(lease.fencingToken);
      expect(await holders('job')).toEqual([resumed.owner]);
      expect(b.leases()).toHaveLength(1);
      expect(await reasonOf(a.resume(ticket))).toBe(
        kind === 'read' || kind === 'semaphore' ? 'deleted' : 'taken',
      );
      // Longer than the lease.
      await new Promise((resolve) => setTimeout(resolve, 1_300));
      expect(resumed.held).toBe(true);
      expect(await holders('job')).toEqual([resumed.owner]);
      await resumed.release();
      expect(await b.inspect('job')).toBeNull();
      expect(await reasonOf(b.resume(ticket))).toBe('expired');
      const next = await lockOf(a).acquire();
      expect(next.fencingToken).toBeGreaterThan(resumed.fencingToken);
      expect(events.filter(({ type }) => type === 'lost')).toEqual([]);
    },
  );

  it.each(Object.keys(KINDS))(
    'lets a waiter in after the release, or after the end of the ticket (%s)',
    async (kind) => {
      const lockOf = KINDS[kind]!;
      const waiterOf = kind === 'read' ? KINDS.write! : lockOf;
      const third = service();
      if (kind === 'semaphore') await lockOf(third).acquire();
      const lease = await lockOf(a).acquire({ leaseTime: 30_000 });
      let granted: Lease | undefined;
      const waiting = waiterOf(third)
        .acquire()
        .then((next) => (granted = next));
      await until(async () => (await third.health()).waiting === 1);
      const resumed = await b.resume(await lease.handOver({ within: 5_000 }));
      const second = await resumed.handOver({ within: 5_000 });
      expect(granted).toBeUndefined();
      const third2 = await b.resume(second);
      expect(granted).toBeUndefined();
      await third2.release();
      const next = await waiting;
      expect(next.fencingToken).toBeGreaterThan(third2.fencingToken);
      await next.release();

      // No process resumes it.
      const other = await lockOf(a).acquire({ leaseTime: 30_000 });
      const late = waiterOf(third).acquire();
      const handing = performance.now();
      const ticket = await other.handOver({ within: 150 });
      await (await late).release();
      expect(performance.now() - handing).toBeGreaterThan(149);
      expect(await reasonOf(b.resume(ticket))).toBe('expired');
    },
  );

  it('goes on in the process that handed it over, and past its local waiters', async () => {
    const lease = await a.acquire('job');
    const waiting = a.acquire('job');
    const ticket = await lease.handOver();
    const resumed = await a.resume(ticket);
    expect(a.leases()).toEqual([resumed]);
    await resumed.release();
    const next = await waiting;
    expect(next.fencingToken).toBeGreaterThan(resumed.fencingToken);
  });

  it('gives a greater token than local hand-offs have given', async () => {
    const first = await a.acquire('job');
    const [second, third] = [a.acquire('job'), a.acquire('job')];
    await first.release();
    await (await second).release();
    const lease = await third;
    const resumed = await b.resume(await lease.handOver());
    expect(resumed.fencingToken).toBeGreaterThan(lease.fencingToken);
  });

  it('leaves the scope of `using`, and enters that of `runInScope`', async () => {
    const ticket = await a.using('job', async (lease) => {
      expect(a.getLock('job').isHeld()).toBe(true);
      const given = await lease.handOver();
      expect(a.getLock('job').isHeld()).toBe(false);
      return given;
    });
    await b.runInScope(async () => {
      const lease = await b.resume(ticket);
      expect(b.getLock('job').holdCount()).toBe(1);
      await b.using('job', (inner) => {
        expect(inner.fencingToken).toBe(lease.fencingToken);
      });
      expect(lease.held).toBe(true);
      await lease.release();
    });
    expect(await b.inspect('job')).toBeNull();
  });

  it('keeps what is left of its minHoldTime', async () => {
    const lease = await a.acquire('job', { minHoldTime: 400 });
    const begun = performance.now();
    const resumed = await b.resume(await lease.handOver({ within: 50 }));
    await resumed.release();
    await a.acquire('job');
    expect(performance.now() - begun).toBeGreaterThan(395);

    const second = await a.acquire('kept', { minHoldTime: 400 });
    const handed = performance.now();
    await second.handOver({ within: 50 });
    await b.acquire('kept');
    expect(performance.now() - handed).toBeGreaterThan(390);
  });

  it('is renewed with the lease time that it had, within maxHoldTime', async () => {
    const lease = await a.acquire('job', { leaseTime: 200, renew: true });
    const resumed = await b.resume(await lease.handOver({ within: 5_000 }));
    expect(resumed.remainingTime()).toBeLessThan(200);
    const limited = service({ maxHoldTime: 150 });
    const short = await limited.resume(await resumed.handOver());
    await until(() => short.signal.aborted);
    expect((short.signal.reason as LockLostError).reason).toBe('max-hold');
  });
});

describe('a ticket', () => {
  const changed = (ticket: string, change: object) => {
    const read = JSON.parse(Buffer.from(ticket, 'base64url').toString()) as object;
    return Buffer.from(JSON.stringify({ ...read, ...change })).toString('base64url');
  };

  it('of another instance, name, kind or owner is refused by name, and stays good', async () => {
    const ticket = await (await a.acquire('job')).handOver();
    const other = service({ keyPrefix: 'other:' });
    const error = await failure(other.resume(ticket));
    expect(isLockConfigError(error)).toBe(true);
    expect((error as Error).message).toContain(
      'ticket: is for the lock "job" of an instance with the keyPrefix "lock:", and this one has "other:"',
    );
    const renamed = await failure(b.resume(changed(ticket, { name: 'other' })));
    expect((renamed as LockLostError).reason).toBe('deleted');
    expect((renamed as Error).message).toContain('"other"');
    expect(await reasonOf(b.resume(changed(ticket, { kind: 'fair' })))).toBe('taken');
    const stranger = '00000000-0000-4000-8000-000000000000:1';
    expect(await reasonOf(b.resume(changed(ticket, { owner: stranger })))).toBe('taken');
    expect((await b.resume(ticket)).held).toBe(true);
    const permit = await (await a.getSemaphore('permits', 2).acquire()).handOver();
    for (const wrong of [{ kind: 'read' }, { permits: 3 }]) {
      expect(await reasonOf(b.resume(changed(permit, wrong)))).toBe('taken');
    }
    expect((await b.resume(permit)).held).toBe(true);
  });

  it('is refused after a forced release, and after the lock has gone from the store', async () => {
    const ticket = await (await a.acquire('job')).handOver({ within: 60_000 });
    expect(await b.forceRelease('job')).toBe(true);
    const error = await failure(b.resume(ticket));
    expect((error as LockLostError).reason).toBe('deleted');
    expect(((error as Error).cause as Error).message).toContain('was taken away');
    await a.acquire('job');
    expect(await reasonOf(b.resume(ticket))).toBe('taken');
  });
});

describe('handOver refuses', () => {
  it('a lease that shares its hold, and leaves it as it was', async () => {
    await a.using('job', async (outer) => {
      await a.using('job', async (inner) => {
        for (const lease of [inner, outer]) {
          const error = await failure(lease.handOver());
          expect(isLockConfigError(error)).toBe(true);
          expect((error as Error).message).toContain('the lease on "job" shares its hold with 1 more');
          expect(lease.held).toBe(true);
        }
      });
      expect(await outer.handOver()).toBeTruthy();
    });
  });

  it('one side of a read-write lock while the process has the other side, or asks for it', async () => {
    await a.runInScope(async () => {
      const { read, write } = a.getReadWriteLock('job');
      const writer = await write.acquire();
      const reading = read.acquire();
      const early = await failure(writer.handOver());
      const reader = await reading;
      for (const error of [early, await failure(writer.handOver()), await failure(reader.handOver())]) {
        expect(isLockConfigError(error)).toBe(true);
        expect((error as Error).message).toContain(
          'the lease on "job" is one side of a read-write lock that this process holds for reading and writing',
        );
      }
      expect([writer.held, reader.held]).toEqual([true, true]);
      await writer.release();
      const resumed = await b.resume(await reader.handOver());
      expect((await b.inspect('job'))?.holders).toMatchObject([{ owner: resumed.owner, mode: 'shared' }]);
    });
  });

  it('a multi-lock, wrong options, and a lease that is gone', async () => {
    const several = await a.acquire(['x', 'y']);
    expect(((await failure(several.handOver())) as Error).message).toContain('a multi-lock does not travel');
    expect(several.held).toBe(true);
    const lease = await a.acquire('job');
    for (const options of [{ within: 0 }, { within: '1x' }, { with: 7 }, null]) {
      expect(isLockConfigError(await failure(lease.handOver(options as object)))).toBe(true);
    }
    expect(lease.held).toBe(true);
    await b.forceRelease('job');
    await until(() => !lease.held);
    expect(await reasonOf(lease.handOver())).toBe('deleted');
  });

  it('a lease that the store has forgotten, and says why', async () => {
    const lease = await a.acquire('job', { leaseTime: 10_000 });
    await MemoryLockStore.prototype.release.call(store, { name: 'job', owner: lease.owner });
    await b.acquire('job');
    const aborted = lease.signal;
    expect(await reasonOf(lease.handOver())).toBe('taken');
    expect(aborted.aborted).toBe(true);
    expect(events.filter(({ type }) => type === 'lost')).toHaveLength(1);
  });
});

describe('a transfer without an answer', () => {
  it('of handOver is sent again for the same owners', async () => {
    const lease = await a.acquire('job');
    store.fates.push('lost after', 'refused');
    const ticket = await lease.handOver();
    expect(new Set(store.requests.map(({ owner, next }) => `${owner} ${next}`)).size).toBe(1);
    const resumed = await b.resume(ticket);
    expect(await holders('job')).toEqual([resumed.owner]);
  });

  it.each(['permanent', 'lost after'] as const)(
    'of handOver gives the lock up in the end (%s)',
    async (fate) => {
      const lease = await a.acquire('job');
      store.fates.push('lost after', ...Array.from({ length: 50 }, () => fate));
      const error = await failure(lease.handOver());
      expect(isLockUnavailableError(error)).toBe(true);
      expect([lease.held, lease.signal.aborted]).toEqual([false, false]);
      store.fates.length = 0;
      expect((await b.acquire('job', { waitTime: 250 })).held).toBe(true);
    },
  );

  it('ends within the waitTime of the module, and what comes of it later is taken back', async () => {
    const impatient = service({ waitTime: 100 });
    const lease = await impatient.acquire('job', { leaseTime: 10_000, renew: true });
    store.fates.push('late');
    const begun = performance.now();
    expect(isLockUnavailableError(await failure(lease.handOver()))).toBe(true);
    const ticket = await (await a.acquire('other')).handOver();
    store.fates.push('late');
    expect(isLockUnavailableError(await failure(impatient.resume(ticket)))).toBe(true);
    expect(performance.now() - begun).toBeLessThan(LATE);
    for (const name of ['job', 'other']) await (await a.acquire(name, { waitTime: 20_000 })).release();
  });

  it('of resume is sent again for the same owners, and the lease is renewed', async () => {
    const ticket = await (await a.acquire('job')).handOver();
    store.fates.push('lost after', 'lost before');
    store.requests.length = 0;
    const resumed = await b.resume(ticket);
    expect(store.requests).toHaveLength(3);
    expect(new Set(store.requests.map(({ next }) => next))).toEqual(new Set([resumed.owner]));
    await new Promise((resolve) => setTimeout(resolve, 1_300));
    expect(resumed.held).toBe(true);
    await resumed.release();
    expect(await b.inspect('job')).toBeNull();
  });

  it('of resume leaves no owner behind that no process renews', async () => {
    const ticket = await (await a.acquire('job')).handOver({ within: 60_000 });
    store.fates.push('lost after', 'permanent');
    expect(isLockUnavailableError(await failure(b.resume(ticket)))).toBe(true);
    await until(async () => (await b.inspect('job')) === null, 30_000);
    expect(await reasonOf(b.resume(ticket))).toBe('deleted');
  });

  it('of resume that did not come through leaves the ticket good', async () => {
    const ticket = await (await a.acquire('job')).handOver();
    store.fates.push('permanent');
    expect(isLockUnavailableError(await failure(b.resume(ticket)))).toBe(true);
    expect((await b.resume(ticket)).held).toBe(true);
  });

  it('ends with the service', async () => {
    const ticket = await (await a.acquire('job')).handOver({ within: 60_000 });
    const closing = service();
    store.fates.push(...Array.from({ length: 20 }, () => 'lost after' as const));
    const refused = failure(closing.resume(ticket));
    await closing.close();
    expect(isLockClosedError(await refused)).toBe(true);
    expect(isLockClosedError(await failure(closing.resume(ticket)))).toBe(true);
    await until(async () => (await b.inspect('job')) === null);
  });
});
