import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger, Module } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import type { Lock, UsingOptions } from '../../lib/index.js';
import { LockModule, LockService, MemoryLockStore } from '../../lib/index.js';
import { ScriptedStore } from '../doubles/scripted-store.js';
import { until, useVirtualTime } from '../support/virtual-time.js';

useVirtualTime();

let store: ScriptedStore;
let locks: LockService;

beforeEach(() => {
  store = new ScriptedStore();
  locks = new LockService({ store });
});

afterEach(() => locks.onApplicationShutdown());

class Patient {
  readonly #seconds = 60;
  get waitTime() {
    return this.#seconds * 1_000;
  }
}

const KINDS: [string, () => Lock][] = [
  ['a plain lock', () => locks.getLock('a')],
  ['a fair lock', () => locks.getFairLock('a')],
  ['a read lock', () => locks.getReadWriteLock('a').read],
  ['a write lock', () => locks.getReadWriteLock('a').write],
  ['a semaphore', () => locks.getSemaphore('a', 2)],
  ['a multi-lock of plain locks', () => locks.getMultiLock([locks.getLock('a'), locks.getLock('b')])],
  ['a multi-lock of any kinds', () => locks.getMultiLock([locks.getLock('a'), locks.getFairLock('b')])],
];

const BAD: [string, unknown, { option: string; message?: RegExp }][] = [
  ['waitTime null', { waitTime: null }, { option: 'waitTime' }],
  [
    'waitTime as a text',
    { waitTime: '10' },
    { option: 'waitTime', message: /environment needs Number\(…\) around it/ },
  ],
  ['waitTime NaN', { waitTime: NaN }, { option: 'waitTime' }],
  ['waitTime below 0', { waitTime: -1 }, { option: 'waitTime' }],
  ['waitTime with a fraction', { waitTime: 1.5 }, { option: 'waitTime' }],
  ['leaseTime null', { leaseTime: null }, { option: 'leaseTime' }],
  ['leaseTime 0', { leaseTime: 0 }, { option: 'leaseTime' }],
  ['leaseTime Infinity', { leaseTime: Infinity }, { option: 'leaseTime' }],
  ['renew as a text', { renew: 'yes' }, { option: 'renew' }],
  ['no signal', { signal: {} }, { option: 'signal' }],
  ['null', null, { option: 'options', message: /must be an object/ }],
  ['an array', [], { option: 'options', message: /must be an object/ }],
  ['a number', 5, { option: 'options', message: /must be an object/ }],
  ['a Map', new Map([['waitTime', 5]]), { option: 'options', message: /must be a plain object/ }],
  [
    'a misspelt option',
    { leasTime: 5 },
    { option: 'leasTime', message: /is not an option of \w+, did you mean leaseTime\? There are waitTime, / },
  ],
  ['one of a method', { onBusy: 'skip' }, { option: 'onBusy', message: /there are waitTime, leaseTime/ }],
  ['a getter of their class', new Patient(), { option: 'waitTime', message: /and not of their class/ }],
];

describe.each(KINDS)('%s', (_, lockOf) => {
  it.each(BAD)(
    'refuses %s before anything is sent, held or not',
    async (__, options, { option, message }) => {
      const lock = lockOf();
      const bad = options as object;
      const refusals = async () => {
        const calls = [lock.acquire(bad), lock.tryAcquire(bad), lock.using(bad, () => undefined)];
        for (const outcome of await Promise.allSettled(calls)) {
          expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'LOCK_CONFIG', option } });
          if (outcome.status === 'rejected' && message !== undefined)
            expect((outcome.reason as Error).message).toMatch(message);
        }
      };
      await refusals();
      expect(store.calls).toMatchObject({ acquire: 0, acquireAll: 0 });
      await lock.using(refusals);
    },
  );

  it('takes options that are there and undefined', async () => {
    const options = { waitTime: undefined, leaseTime: undefined, renew: undefined, signal: undefined };
    await (await lockOf().acquire(options)).release();
    await (await lockOf().tryAcquire({}))?.release();
    await lockOf().using({ ...options, minHoldTime: undefined }, () => undefined);
  });

  it('refuses kind, which the lock has already', async () => {
    await expect(lockOf().acquire({ kind: 'fair' })).rejects.toMatchObject({
      code: 'LOCK_CONFIG',
      option: 'kind',
    });
  });

  it.each(['500ms', '30s', '0.5m', '2h', '1d'] as const)('takes %s as a time', async (time) => {
    const options = { waitTime: time, leaseTime: time, renew: true, minHoldTime: '1ms' } as const;
    const lease = await lockOf().acquire(options);
    await lease.extend(time);
    await lease.release();
  });

  it.each(['30', '-1s', '1e3s', '1.0001ms', '5 m', '5M', 's', '', '9999999999d', 'Infinitys'])(
    'refuses %j as a time',
    async (time) => {
      for (const option of ['waitTime', 'leaseTime', 'minHoldTime']) {
        const refused = lockOf().acquire({ [option]: time });
        await expect(refused).rejects.toMatchObject({ code: 'LOCK_CONFIG', option });
      }
      const lease = await lockOf().acquire();
      await expect(lease.extend(time as '1s')).rejects.toMatchObject({ code: 'LOCK_CONFIG' });
      await lease.release();
    },
  );

  it('refuses a minHoldTime that is no time', async () => {
    const using = (minHoldTime: unknown) => lockOf().using({ minHoldTime } as object, () => undefined);
    await using(1);
    for (const bad of [null, -1, '5', Infinity])
      await expect(using(bad)).rejects.toMatchObject({ code: 'LOCK_CONFIG', option: 'minHoldTime' });
  });
});

it('renew: false alone holds for the lease time of the module, and no longer', async () => {
  const short = new LockService({ store, leaseTime: 60 });
  const lease = await short.acquire('a', { renew: false });
  expect(lease.remainingTime()).toBeGreaterThan(0);
  await until(() => !lease.held);
  expect(store.calls.renew).toBe(0);
  await short.close();
});

it('takes no minHoldTime that is longer than maxHoldTime, at which a lease that is renewed ends', async () => {
  const locks = new LockService({ store: 'memory', maxHoldTime: 500 });
  for (const lock of [
    locks.getLock('a'),
    locks.getFairLock('b'),
    locks.getMultiLock([locks.getLock('c'), locks.getLock('d')]),
  ]) {
    const using = (options: UsingOptions) => lock.using(options, () => undefined);
    await using({ minHoldTime: 500 });
    await using({ minHoldTime: 501, leaseTime: 60_000 });
    for (const options of [{}, { leaseTime: 60_000, renew: true }]) {
      await expect(
        lock.using({ ...options, minHoldTime: 501, waitTime: 0 }, () => undefined),
      ).rejects.toThrow(/minHoldTime: must not be longer than maxHoldTime, 500 ms/);
    }
    await lock.forceRelease();
  }
  await locks.onApplicationShutdown();
});

it("takes no minHoldTime that is longer than a fixed lease of the module's length", async () => {
  const locks = new LockService({ store: 'memory', leaseTime: 500 });
  await locks.using('a', { renew: false, minHoldTime: 500 }, () => undefined);
  const rule = /minHoldTime: must not be longer than the fixed lease of 500 ms, .*set renew: true/;
  await expect(locks.using('b', { renew: false, minHoldTime: 501 }, () => undefined)).rejects.toThrow(rule);
  await locks.close();
  const presets = { job: { renew: false, minHoldTime: 501 } };
  expect(() => new LockService({ store: 'memory', leaseTime: 500, presets })).toThrow(rule);
});

it.each([
  ['leasTime', 'leaseTime'],
  ['leastime', 'leaseTime'],
  ['LEASETIME', 'leaseTime'],
  ['lease', 'leaseTime'],
  ['wait', 'waitTime'],
  ['waitTimes', 'waitTime'],
  ['renewed', 'renew'],
  ['singal', 'signal'],
  ['rnw', 'renew'],
  ['renewAutomatically', 'renew'],
  ['minHold', 'minHoldTime'],
  ['xyz', undefined],
  ['ttl', undefined],
  ['', undefined],
])('%p: names the option that was probably meant, %s', async (name, meant) => {
  const locks = new LockService({ store: 'memory' });
  const refused = locks.acquire('a', { [name]: 1 });
  if (meant !== undefined) await expect(refused).rejects.toThrow(`did you mean ${meant}?`);
  else await expect(refused).rejects.toThrow(/is not an option of acquire; there are/);
  await locks.close();
});

describe('the options of LockService, in memory', () => {
  let service: LockService;

  beforeEach(() => {
    service = new LockService({ store: 'memory', leaseTime: '30s', waitTime: '1s', maxHoldTime: '1h' });
  });

  afterEach(() => service.close());

  it.each([
    ['lock', 'lock'],
    ['fair', 'fair'],
    ['read', 'read-write'],
    ['write', 'read-write'],
  ] as const)('kind %s takes that kind, of one name and of several', async (kind, stored) => {
    const one = await service.acquire('a', { kind });
    expect((await service.inspect('a'))?.kind).toBe(stored);
    await one.release();
    await service.using(['a', 'b'], { kind }, async () => {
      expect((await service.inspect('b'))?.kind).toBe(stored);
    });
    const tried = await service.tryAcquire('c', { kind, leaseTime: '5s' });
    expect((await service.inspect('c'))?.kind).toBe(stored);
    expect(tried?.remainingTime()).toBeLessThanOrEqual(5_000);
    await tried?.release();
  });

  it('refuses a kind that there is not', async () => {
    for (const kind of ['fare', null, 5]) {
      const refused = service.acquire('a', { kind: kind as 'fair' });
      await expect(refused).rejects.toThrow(/^kind: must be lock or fair or read or write \(found: /);
    }
  });

  it('getFairLock takes several names as one multi-lock', async () => {
    const lease = await service.getFairLock(['b', 'a']).acquire();
    expect(lease.name).toBe('a,b');
    expect((await service.inspect('a'))?.kind).toBe('fair');
    await lease.release();
  });

  it.each(['a', ['a', 'b']])('acquire keeps %j for minHoldTime, although it is released', async (name) => {
    const lease = await service.acquire(name, { minHoldTime: '60s' });
    await lease.release();
    expect(lease.held).toBe(false);
    expect(await service.tryAcquire('a')).toBeNull();
    const remaining = await service.getLock('a').remainingTime();
    expect(remaining).toBeGreaterThan(50_000);
    expect(remaining).toBeLessThanOrEqual(60_000);
  });

  it('tryAcquire takes minHoldTime as well', async () => {
    await (await service.tryAcquire('a', { minHoldTime: 60_000 }))?.release();
    expect(await service.tryAcquire('a')).toBeNull();
  });
});

it.each([0, 1.5, NaN, '2'])('a semaphore of %p permits is refused', (permits) => {
  const refused = expect.objectContaining({ code: 'LOCK_CONFIG', option: 'permits' });
  expect(() => locks.getSemaphore('a', permits as number)).toThrow(refused);
});

it('services, locks, leases, elections and terms serialise to their names and states', async () => {
  const service = new LockService({ store: 'memory', label: 'me' });
  const json = (value: unknown) => JSON.parse(JSON.stringify(value)) as unknown;
  const election = service.getElection('d');
  await election.run((term) => {
    expect(json([service, election, term])).toEqual([
      { label: 'me' },
      { name: 'd', state: 'leading' },
      { number: term.number },
    ]);
  });
  const shown = { held: true, owner: expect.any(String), acquiredAt: expect.any(String) };
  const [lease, group] = [await service.acquire('a'), await service.acquire(['b', 'c'])];
  expect(json([service.getFairLock('a'), lease, group])).toMatchObject([
    { name: 'a', kind: 'fair' },
    { ...shown, name: 'a', fencingToken: lease.fencingToken },
    { ...shown, name: 'b,c', fencingToken: group.fencingToken },
  ]);
  await service.close();
});

it('the end of an await using block closes a service and releases what it holds', async () => {
  const events: string[] = [];
  {
    await using service = new LockService({ store: 'memory' });
    service.events$.subscribe({
      next: ({ type }) => events.push(type),
      complete: () => events.push('complete'),
    });
    await service.acquire('a');
  }
  expect(events).toEqual(['acquired', 'lost', 'complete']);
});

it('says whose option of forRootAsync is wrong, and the cure for a number of the environment', async () => {
  @Module({
    imports: [
      LockModule.forRootAsync({
        name: 'jobs',
        useFactory: () => ({ store: 'memory', leaseTime: '30000' as unknown as number }),
      }),
    ],
  })
  class App {}
  const boot = Test.createTestingModule({ imports: [App] }).compile();
  await expect(boot).rejects.toThrow(
    /^leaseTime: .* needs Number\(…\) around it \(found: "30000"\); given by useFactory of LockModule.forRootAsync "jobs"$/,
  );
});

it('warns of a lease that looks like seconds', () => {
  const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
  new LockService({ store: 'memory', leaseTime: 100 });
  new LockService({ store: 'memory', leaseTime: 30, silencedWarnings: ['short-lease'] });
  expect(warn).not.toHaveBeenCalled();
  new LockService({ store: 'memory', leaseTime: 30 });
  expect(warn).toHaveBeenCalledWith(expect.stringMatching(/^leaseTime is 30 ms\. Times are milliseconds/));
  warn.mockRestore();
});

describe('maxWaiting', () => {
  let service: LockService;

  beforeEach(() => {
    service = new LockService({ store: 'memory', maxWaiting: 3 });
  });

  afterEach(() => service.close());

  const KINDS_OF_ONE_NAME: [string, () => Lock][] = [
    ['a plain lock', () => service.getLock('a')],
    ['a fair lock', () => service.getFairLock('a')],
    ['a write lock', () => service.getReadWriteLock('a').write],
    ['a semaphore', () => service.getSemaphore('a', 1)],
    ['a multi-lock', () => service.getMultiLock([service.getLock('a'), service.getLock('b')])],
  ];

  it.each(KINDS_OF_ONE_NAME)('refuses a caller at once where so many wait for %s', async (_, lockOf) => {
    const held = await lockOf().acquire();
    const waiting = Array.from({ length: 3 }, () => lockOf().acquire());
    const begun = performance.now();
    const refused: unknown = await lockOf()
      .acquire()
      .catch((error: unknown) => error);
    expect(performance.now() - begun).toBeLessThan(1_000);
    expect(refused).toMatchObject({ code: 'LOCK_TIMEOUT', reason: 'queue-full', key: 'a', status: 409 });
    expect((refused as Error).message).toMatch(/: maxWaiting callers wait for it already$/);
    expect(await lockOf().tryAcquire({ waitTime: 5_000 })).toBeNull();
    const more = lockOf().acquire({ maxWaiting: 4 });

    await held.release();
    for (const lease of [...waiting, more]) await (await lease).release();
    await (await lockOf().acquire()).release();
  });

  it.each(KINDS_OF_ONE_NAME)('counts no caller that asks once or has left for %s', async (_, lockOf) => {
    const held = await lockOf().acquire();
    const leaver = new AbortController();
    const left = lockOf().acquire({ signal: leaver.signal });
    const asking = [lockOf().tryAcquire(), lockOf().tryAcquire()];
    const waiting = [lockOf().acquire(), lockOf().acquire()];
    leaver.abort();
    await expect(left).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
    waiting.push(lockOf().acquire());
    await expect(lockOf().acquire()).rejects.toMatchObject({ reason: 'queue-full' });
    expect(await Promise.all(asking)).toEqual([null, null]);
    await held.release();
    for (const lease of waiting) await (await lease).release();
  });

  it('does not count callers that do not wait, other names, or callers that re-enter', async () => {
    const lock = service.getLock('a');
    await lock.using(async () => {
      const waiting = Array.from({ length: 3 }, () => service.runInScope(() => lock.acquire()));
      for (const lease of waiting) void lease.then((held) => held.release());
      expect(await service.runInScope(() => lock.tryAcquire())).toBeNull();
      await service
        .runInScope(() => lock.acquire({ waitTime: 0 }))
        .catch((error: unknown) => {
          expect(error).toMatchObject({ reason: 'timeout' });
        });
      await (await service.acquire('b')).release();
      await (await lock.acquire()).release();
    });
    await until(async () => !(await lock.isLocked()));
  });

  it.each([0, -1, 1.5, NaN, '3', null])('cannot be %p', async (maxWaiting) => {
    const bad = maxWaiting as number;
    expect(() => new LockService({ store: 'memory', maxWaiting: bad })).toThrow(
      /^maxWaiting: must be a whole/,
    );
    await expect(service.acquire('a', { maxWaiting: bad })).rejects.toThrow(/^maxWaiting: must be a whole/);
  });
});

it.each(['command-timeout', [5], ['Command Timeout'], null])('silencedWarnings cannot be %j', (codes) => {
  const options = { store: 'memory', silencedWarnings: codes as string[] } as const;
  expect(() => new LockService(options)).toThrow(/^silencedWarnings: must be an array of codes/);
});

it('the signal of a polyfill ends a wait, whatever is the `this` of its listeners', async () => {
  const service = new LockService({ store: new MemoryLockStore() });
  const held = await service.acquire('a');
  const listeners = new Set<() => void>();
  const signal = {
    aborted: false,
    reason: undefined,
    addEventListener: (_: string, listener: () => void) => listeners.add(listener),
    removeEventListener: (_: string, listener: () => void) => listeners.delete(listener),
  };
  const waiting = [0, 1].map(() => service.acquire('a', { signal: signal as unknown as AbortSignal }));
  const ended = Promise.allSettled(waiting);
  expect(listeners.size).toBe(1);
  signal.aborted = true;
  for (const listener of listeners) listener.call({});
  expect(await ended).toMatchObject([0, 1].map(() => ({ reason: { code: 'LOCK_ABORTED' } })));
  expect(listeners.size).toBe(0);
  await held.release();
  await service.onApplicationShutdown();
});
