import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { Lock, UsingOptions } from '../../lib/index.js';
import { LockService } from '../../lib/index.js';
import { nearest } from '../../lib/core/nearest.js';
import { ScriptedStore } from '../doubles/scripted-store.js';

let store: ScriptedStore;
let locks: LockService;

beforeEach(() => {
  store = new ScriptedStore();
  locks = new LockService({ store });
});

afterEach(() => locks.onApplicationShutdown());

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
  ['waitTime as a text', { waitTime: '10' }, { option: 'waitTime' }],
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
  [
    'a misspelt option',
    { leasTime: 5 },
    { option: 'leasTime', message: /is not an option of \w+, did you mean leaseTime\? There are waitTime, / },
  ],
  ['one of a method', { onBusy: 'skip' }, { option: 'onBusy', message: /there are waitTime, leaseTime/ }],
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

  it('takes minHoldTime where there is a callback, and there only', async () => {
    await expect(lockOf().acquire({ minHoldTime: 5 } as object)).rejects.toMatchObject({
      code: 'LOCK_CONFIG',
      option: 'minHoldTime',
    });
    const using = (minHoldTime: unknown) => lockOf().using({ minHoldTime } as object, () => undefined);
    await using(1);
    for (const bad of [null, -1, '5', Infinity])
      await expect(using(bad)).rejects.toMatchObject({ code: 'LOCK_CONFIG', option: 'minHoldTime' });
  });
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

it('names the option that was probably meant', () => {
  const known = ['waitTime', 'leaseTime', 'renew', 'signal', 'minHoldTime'];
  const meant = [
    'leasTime',
    'leastime',
    'LEASETIME',
    'lease',
    'wait',
    'waitTimes',
    'renewed',
    'singal',
    'ttl',
    '',
  ];
  expect(meant.map((name) => nearest(name, known))).toEqual([
    'leaseTime',
    'leaseTime',
    'leaseTime',
    'leaseTime',
    'waitTime',
    'waitTime',
    'renew',
    'signal',
    undefined,
    undefined,
  ]);
});
