import { beforeEach, describe, expect, it } from '@jest/globals';
import { lastValueFrom, toArray } from 'rxjs';
import {
  currentLease,
  type Election,
  type LockEvent,
  LockLostError,
  LockService,
  LockUnavailableError,
  MemoryLockStore,
  type Term,
} from '../../lib/index.js';
import { deferred } from '../doubles/deferred.js';
import { ScriptedStore } from '../doubles/scripted-store.js';
import { pass, standStill, until, useVirtualTime } from '../support/virtual-time.js';
import { servicesOfEach } from '../support/services.js';

useVirtualTime();

let store: MemoryLockStore;
let a: Election;
let b: Election;
let events: LockEvent[];
const { open, services } = servicesOfEach(() => ({ store, leaseTime: 300 }));

beforeEach(() => {
  store = new MemoryLockStore();
  events = [];
  a = open({ label: 'a' }).getElection('indexer');
  b = open({ label: 'b' }).getElection('indexer');
  services[0]!.events$.subscribe((event) => events.push(event));
});

const untilOver = (term: Term) =>
  new Promise<void>((resolve) => {
    term.signal.addEventListener('abort', () => {
      resolve();
    });
  });

describe('run', () => {
  it('leads while the callback runs, and resigns when it returns', async () => {
    const seen: unknown[] = [];
    expect(a.state).toBe('idle');
    const first = a.run(async (term) => {
      seen.push(a.state, a.isLeader(), b.isLeader(), term.signal.aborted);
      expect(await b.leader()).toEqual({ label: 'a', term: term.number });
      seen.push(currentLease()?.fencingToken === term.number);
    });
    const second = b.run(() => seen.push(b.state, a.state, a.isLeader()));
    expect(a.state).toBe('follower');
    expect(await Promise.all([first, second])).toEqual([undefined, undefined]);
    expect(seen).toEqual(['leading', true, false, false, true, 'leading', 'resigning', false]);
    expect(await a.leader()).toBeNull();
  });

  it('rejects with the error of the callback, and resigns', async () => {
    const error = new Error('no index');
    await expect(a.run(() => Promise.reject(error))).rejects.toBe(error);
    await expect(
      a.run(() => {
        throw error;
      }),
    ).rejects.toBe(error);
    expect([a.state, await a.leader()]).toEqual(['idle', null]);
  });

  it('ends with the signal, while it campaigns and while it leads', async () => {
    const stop = new AbortController();
    const reason = new Error('enough');
    let told: unknown;
    const leading = a.run(
      async ({ signal }) => {
        await pass(10_000, undefined, { signal }).catch(() => undefined);
        told = signal.reason;
      },
      { signal: stop.signal },
    );
    await until(() => a.isLeader());
    const campaigning = b.run(() => undefined, { signal: stop.signal });
    await pass(20);
    stop.abort(reason);
    await Promise.all([leading, campaigning]);
    expect(told).toBe(reason);
    expect([a.state, b.state, await a.leader()]).toEqual(['idle', 'idle', null]);
    let runs = 0;
    await a.run(() => runs++, { signal: stop.signal });
    expect([runs, a.state]).toEqual([0, 'idle']);
    await a.run(() => runs++);
    expect(runs).toBe(1);
  });

  it('campaigns again after a lost term, when the callback has ended, and takes its error for the end', async () => {
    const terms: number[] = [];
    let at = 0;
    let reason: unknown;
    const run = a.run(async (term) => {
      at++;
      terms.push(term.number);
      if (terms.length === 2) return;
      await services[1]!.forceRelease('indexer');
      await untilOver(term);
      expect([a.state, a.isLeader()]).toEqual(['resigning', false]);
      await pass(100);
      expect(at).toBe(1);
      reason = term.signal.reason;
      throw new Error('cannot write any more');
    });
    await run;
    expect(reason).toBeInstanceOf(LockLostError);
    expect(terms).toHaveLength(2);
    expect(terms[1]).toBeGreaterThan(terms[0]!);
    const warnings = events.filter(({ type }) => type === 'warning');
    expect(warnings).toEqual([expect.objectContaining({ code: 'term-error' })]);
  });

  it('says nothing of an error that the abort has caused', async () => {
    let terms = 0;
    await a.run(async ({ signal }) => {
      if (++terms > 3) return;
      void a.resign();
      if (terms === 1) await pass(10_000, undefined, { signal });
      if (terms === 2) signal.throwIfAborted();
      if (terms === 3) throw new Error('fetch failed', { cause: signal.reason });
    });
    expect(events.filter(({ type }) => type === 'warning')).toEqual([]);
  });

  it.each(['released', 'handed over'])(
    'ends the term whose lease is %s by other code, before another leads',
    async (way) => {
      const told: boolean[] = [];
      a.leader$.subscribe((leads) => told.push(leads));
      const gate = deferred();
      const terms: Term[] = [];
      const running = a.run(async (term) => {
        terms.push(term);
        await gate.promise;
      });
      await until(() => terms.length === 1);
      const [lease] = services[0]!.leases();
      const given = way === 'released' ? lease!.release() : lease!.handOver({ within: 50 });
      expect(terms[0]!.signal.aborted).toBe(true);
      expect(told).toEqual([false, true, false]);
      await given;
      void b.run(untilOver);
      await until(() => b.isLeader());
      expect(a.state).toBe('resigning');
      await a.resign();
      const closed = services[0]!.close();
      gate.resolve();
      await closed;
      await running;
      expect(terms).toHaveLength(1);
    },
  );

  it('has no term whose lease is released as its event is told', async () => {
    let grants = 0;
    services[0]!.events$.subscribe(({ type }) => {
      if (type === 'acquired' && ++grants === 1) void services[0]!.leases()[0]!.release();
    });
    const told: boolean[] = [];
    a.leader$.subscribe((leads) => told.push(leads));
    const terms: number[] = [];
    await a.run(({ number }) => terms.push(number));
    expect([grants, terms.length, told]).toEqual([2, 1, [false, true, false]]);
  });

  it('runs nothing where the signal aborts at the grant, and leaves the lock free', async () => {
    const stop = new AbortController();
    services[0]!.events$.subscribe(({ type }) => {
      if (type === 'acquired') stop.abort();
    });
    let runs = 0;
    await a.run(() => runs++, { signal: stop.signal });
    expect([runs, a.state, await a.leader()]).toEqual([0, 'idle', null]);
  });

  it('is refused while one runs, and wants a callback', async () => {
    const gate = deferred();
    const run = a.run(() => gate.promise);
    const again = services[0]!.getElection('indexer');
    await expect(again.run(() => undefined)).rejects.toMatchObject({ code: 'LOCK_CONFIG' });
    await expect(again.run(() => undefined)).rejects.toThrow('runs already');
    gate.resolve();
    await run;
    await expect(a.run(undefined as never)).rejects.toMatchObject({ code: 'LOCK_CONFIG' });
    await expect(a.run(() => undefined, { wait: 1 } as never)).rejects.toThrow('is not an option');
    await a.run(() => undefined);
  });

  it('refuses what is read later, as it would be without its lock', async () => {
    await expect(a.run(() => a.leader$)).rejects.toMatchObject({ code: 'LOCK_CONFIG' });
  });

  it('is refused on a name of another kind', async () => {
    const lease = await services[1]!.getFairLock('indexer').acquire();
    await expect(a.run(() => undefined)).rejects.toMatchObject({ code: 'LOCK_KIND_MISMATCH' });
    await lease.release();
  });

  it('does not share the scope of its caller, and gives the term one of its own', async () => {
    await services[0]!.using('outer', async () => {
      await a.run(async () => {
        expect(services[0]!.getLock('outer').isHeld()).toBe(false);
        expect(await services[0]!.using('indexer', () => 'again')).toBe('again');
      });
    });
  });
});

describe('resign', () => {
  it('waits for the callback, lets another lead, and campaigns again behind it', async () => {
    const order: string[] = [];
    const [gate, done] = [deferred(), deferred()];
    let terms = 0;
    const first = a.run(async (term) => {
      if (++terms === 2) return;
      order.push('a leads');
      await untilOver(term);
      order.push('a told');
      await gate.promise;
      order.push('a ends');
    });
    await until(() => a.isLeader());
    const second = b.run(async () => {
      order.push('b leads');
      await done.promise;
    });
    await pass(20);
    const resigned = a.resign().then(() => order.push('resigned'));
    expect([a.isLeader(), a.state]).toEqual([false, 'resigning']);
    await pass(50);
    expect(b.isLeader()).toBe(false);
    gate.resolve();
    await resigned;
    await until(() => b.isLeader());
    expect(a.state).toBe('follower');
    done.resolve();
    await Promise.all([first, second]);
    expect(order.slice(0, 3)).toEqual(['a leads', 'a told', 'a ends']);
    expect(order).toHaveLength(5);
    expect(terms).toBe(2);
  });

  it('lets another lead at the deadline of the lease, while a callback does not end', async () => {
    const gate = deferred();
    let deadline = 0;
    const first = a.run(() => gate.promise);
    await until(() => a.isLeader());
    const second = b.run(() => undefined);
    const [lease] = services[0]!.leases();
    const resigned = a.resign();
    deadline = performance.now() + lease!.remainingTime();
    await pass(20);
    expect(b.isLeader()).toBe(false);
    await resigned;
    expect(performance.now()).toBeGreaterThan(deadline - 5);
    await second;
    expect(a.state).toBe('resigning');
    gate.resolve();
    await first;
  });

  it('does nothing where this process does not lead, and does not wait inside of the callback', async () => {
    await a.resign();
    let terms = 0;
    await a.run(async () => {
      if (++terms < 3) await a.resign();
    });
    expect(terms).toBe(3);
  });
});

describe('leader$', () => {
  it('gives the present value first, then each change, outside of scopes, and completes at shutdown', async () => {
    const inside: boolean[] = [];
    const look = () => inside.push(services[0]!.getLock('indexer').isHeld());
    a.leader$.subscribe(look);
    const all = lastValueFrom(a.leader$.pipe(toArray()));
    const seen: boolean[] = [];
    await a.run(() => {
      a.leader$.subscribe((leads) => {
        seen.push(leads);
        look();
      });
    });
    await services[0]!.close();
    expect(await all).toEqual([false, true, false]);
    expect(seen).toEqual([true, false]);
    expect(inside).toEqual(Array(5).fill(false));
    expect(await lastValueFrom(a.leader$.pipe(toArray()))).toEqual([false]);
  });
});

describe('leader', () => {
  it('is null where no process leads, also while the lock is kept for its former owner', async () => {
    expect(await a.leader()).toBeNull();
    const lease = await services[1]!.acquire('indexer', { minHoldTime: 60_000 });
    expect(await a.leader()).toEqual({ label: 'b', term: lease.fencingToken });
    await lease.release();
    expect(await services[1]!.getLock('indexer').isLocked()).toBe(true);
    expect(await a.leader()).toBeNull();
  });

  it('is called by its client where the store knows no label', async () => {
    const reply = await store.acquire({ name: 'indexer', owner: 'elsewhere:12', leaseTime: 60_000 });
    expect(await a.leader()).toEqual({ label: 'elsewhere', term: reply.granted && reply.fencingToken });
  });
});

describe('a warning of an election', () => {
  const warnings = () => events.flatMap((event) => (event.type === 'warning' ? [event.message] : []));

  it('tells why the store refuses a campaign, which the signal ends at once', async () => {
    const refusing = new ScriptedStore();
    const locks = new LockService({ store: refusing });
    services.push(locks);
    locks.events$.subscribe((event) => events.push(event));
    const refuse = async (name: string, error: LockUnavailableError) => {
      refusing.beforeAcquire = () => Promise.reject(error);
      const abort = new AbortController();
      const election = locks.getElection(name);
      const running = election.run(() => undefined, { signal: abort.signal });
      await until(() => warnings().some((message) => message.includes(`"${name}"`)));
      expect([election.state, election.isLeader()]).toEqual(['follower', false]);
      // Several attempts, and one warning.
      refusing.calls.acquire = 0;
      await pass(20_000);
      expect(refusing.calls.acquire).toBeGreaterThan(3);
      abort.abort();
      await running;
      expect(election.state).toBe('idle');
    };
    await refuse('one', new LockUnavailableError('one', { permanent: true, cause: new Error('WRONGPASS') }));
    const without = new LockUnavailableError('two', { permanent: true });
    await refuse('two', without);
    await refuse('three', new LockUnavailableError('three', { cause: new Error('reset') }));
    expect(warnings()).toEqual([
      expect.stringMatching(/"one".*: WRONGPASS$/),
      expect.stringContaining(without.message),
      expect.stringMatching(/"three".*: reset$/),
    ]);
  });
});

describe('isLeader', () => {
  it('is false at the deadline, even while a timer is late', async () => {
    let seen: unknown[] = [];
    await a.run((term) => {
      if (seen.length > 0) return;
      standStill(320);
      seen = [a.isLeader(), a.state, term.signal.aborted];
    });
    expect(seen).toEqual([false, 'resigning', true]);
  });
});

describe('shutdown', () => {
  it('tells the callback, waits for its end, and resolves each run', async () => {
    const steps: string[] = [];
    let reason: unknown;
    const leading = a.run(async (term) => {
      await untilOver(term);
      reason = term.signal.reason;
      await pass(50);
      await services[0]!.using('another', () => steps.push('another lock'));
      steps.push('ended');
    });
    await until(() => a.isLeader());
    const campaigning = services[0]!.getElection('other').run(() => new Promise(() => undefined));
    const held = await services[1]!.acquire('third');
    const waiting = services[0]!.getElection('third').run(() => undefined);
    void campaigning;
    services[0]!.beforeApplicationShutdown();
    expect(a.isLeader()).toBe(false);
    await waiting;
    const closed = services[0]!.close().then(() => steps.push('closed'));
    await leading;
    expect(steps).toEqual(['another lock', 'ended']);
    await closed;
    expect(events).toContainEqual(
      expect.objectContaining({ type: 'lost', name: 'other', reason: 'expired' }),
    );
    expect(reason).toMatchObject({ code: 'LOCK_CLOSED' });
    await expect(a.run(() => undefined)).rejects.toMatchObject({ code: 'LOCK_CLOSED' });
    await expect(services[0]!.getElection('new').run(() => undefined)).rejects.toMatchObject({
      code: 'LOCK_CLOSED',
    });
    await held.release();
  });

  it('lets resign() end a term at its deadline, whose callback does not end', async () => {
    const gate = deferred();
    const run = a.run(() => gate.promise);
    await until(() => a.isLeader());
    services[0]!.beforeApplicationShutdown();
    await pass(1_000);
    expect(await b.leader()).toMatchObject({ label: 'a' });
    const resigned = a.resign().then(() => 'resigned');
    expect(await Promise.race([resigned, pass(5_000, 'waits')])).toBe('resigned');
    expect([a.state, await b.leader()]).toEqual(['resigning', null]);
    gate.resolve();
    await run;
  });
});

describe('getElection', () => {
  it('gives one election for each name', () => {
    expect(services[0]!.getElection('indexer')).toBe(a);
    expect(services[0]!.getElection('other')).not.toBe(a);
    expect(a.name).toBe('indexer');
  });

  it('refuses a wrong name, option and lease time, and another lease time while it runs', async () => {
    const [locks] = services;
    expect(() => locks!.getElection('')).toThrow(expect.objectContaining({ code: 'LOCK_KEY' }));
    expect(() => locks!.getElection('x', { lease: 5 } as never)).toThrow('is not an option');
    expect(() => locks!.getElection('x', { leaseTime: 1 })).toThrow('leaseTime');
    const election = locks!.getElection('x', { leaseTime: '5s' });
    await election.run(() => {
      expect(locks!.leases()[0]!.remainingTime()).toBeGreaterThan(4_000);
      expect(locks!.getElection('x', { leaseTime: 5_000 })).toBe(election);
      expect(() => locks!.getElection('x', { leaseTime: 6_000 })).toThrow(
        'with which the election runs, 5000 ms',
      );
    });
    await a.run(() => {
      expect(() => locks!.getElection('indexer', { leaseTime: 6_000 })).toThrow("runs, the module's");
    });
    expect(locks!.getElection('x', { leaseTime: 6_000 })).toBe(election);
  });
});
