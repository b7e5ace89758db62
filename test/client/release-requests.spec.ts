import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { type LockEvent, LockService } from '../../lib/index.js';
import { deferred } from '../doubles/deferred.js';
import { ScriptedStore } from '../doubles/scripted-store.js';

let store: ScriptedStore;
let locks: LockService;
let asker: LockService;
let events: LockEvent[];

beforeEach(() => {
  jest.useFakeTimers();
  store = new ScriptedStore();
  locks = new LockService({ store, label: 'worker' });
  asker = new LockService({ store, label: 'console' });
  events = [];
  locks.events$.subscribe((event) => events.push(event));
});

afterEach(async () => {
  await Promise.all([locks.close(), asker.close()]);
  jest.useRealTimers();
});

const pass = (time: number) => jest.advanceTimersByTimeAsync(time);
const requests = () => events.filter(({ type }) => type === 'release-requested');

/** The service receives messages from then on. */
async function listening(): Promise<void> {
  const lease = await locks.acquire('warm');
  await pass(1_001);
  await lease.release();
}

it('a holder of the first second is not reached, and is not counted', async () => {
  const lease = await locks.acquire('a');
  expect(await asker.requestRelease('a')).toBe(0);
  await pass(1_001);
  expect(await asker.requestRelease('a')).toBe(1);
  await pass(0);
  expect(lease.releaseRequested.aborted).toBe(true);
});

it('a request that overtakes the reply that grants the lock is told of as its holder begins', async () => {
  await listening();
  const reply = deferred();
  store.afterAcquire = () => reply.promise;
  const acquiring = locks.acquire('a');
  await pass(0);
  store.afterAcquire = () => undefined;
  expect(await asker.requestRelease('a', { reason: 'early' })).toBe(1);
  await pass(0);
  expect(requests()).toEqual([]);
  reply.resolve();
  const lease = await acquiring;
  await pass(0);
  expect(String(lease.releaseRequested.reason)).toContain('"early"');
  expect(events.map(({ type }) => type).slice(-2)).toEqual(['acquired', 'release-requested']);
});

it('is of the present hold: neither of the next one, nor of one that is over or kept', async () => {
  await listening();
  const lease = await locks.acquire('a', { minHoldTime: 60_000 });
  await lease.release();
  expect(await asker.inspect('a')).not.toBeNull();
  expect(await asker.requestRelease('a')).toBe(0);
  expect(await locks.requestRelease('a')).toBe(0);
  await pass(0);
  expect([requests(), lease.releaseRequested.aborted]).toEqual([[], false]);
});

it('many readers of one process are told each, on one line of the log', async () => {
  const lines: string[] = [];
  const log = (text: unknown) => lines.push(String(text));
  Logger.overrideLogger({ log, warn: log, error: log });
  await listening();
  const { read } = locks.getReadWriteLock('a');
  const leases = await Promise.all(Array.from({ length: 500 }, () => read.acquire()));
  for (const reason of ['deploy', 'again']) expect(await asker.requestRelease('a', { reason })).toBe(500);
  await pass(0);
  expect(leases.every(({ releaseRequested }) => releaseRequested.aborted)).toBe(true);
  expect(requests()).toHaveLength(1_000);
  expect(new Set(requests().map((event) => (event as { request: string }).request)).size).toBe(2);
  expect(requests()[0]).toMatchObject({ name: 'a', holders: 500 });
  expect(lines.filter((line) => line.startsWith('Asked to release'))).toEqual([
    'Asked to release the lock "a" (500 holds of this process) by "console": "deploy"',
    'Asked to release the lock "a" (500 holds of this process) by "console": "again"',
  ]);
  await Promise.all(leases.map((lease) => lease.release()));
  Logger.overrideLogger(false);
});

it.each([
  ['an empty reason', { reason: '' }, /"reason"|reason: must be a text of 1 to 1000 characters/],
  ['a reason of spaces', { reason: ' \n' }, /not only spaces/],
  [
    'a reason of invisible characters',
    { reason: '\u200b\u00ad\u2800\u{e0001}' },
    /not only spaces and invisible ones/,
  ],
  ['a reason that is too long', { reason: 'x'.repeat(1_001) }, /1 to 1000/],
  ['a reason that is no text', { reason: 7 }, /1 to 1000.*7/],
  ['a misspelt option', { raeson: 'x' }, /did you mean reason/],
  ['a text', 'deploy', /options/],
])('refuses %s, and asks and takes nothing', async (_, options, message) => {
  const lease = await locks.acquire('a');
  const given = options as { reason: string };
  const code = 'LOCK_CONFIG';
  const refused = { code, message: expect.stringMatching(message) };
  await expect(locks.requestRelease('a', given)).rejects.toMatchObject(refused);
  await expect(locks.forceRelease('a', given)).rejects.toMatchObject(refused);
  await expect(locks.getReadWriteLock('a').read.forceRelease(given)).rejects.toMatchObject(refused);
  await expect(locks.getMultiLock([locks.getLock('a')]).forceRelease(given)).rejects.toMatchObject(refused);
  expect([lease.held, requests()]).toEqual([true, []]);
  expect(await locks.requestRelease('a', { reason: 'x'.repeat(1_000) })).toBe(1);
});
