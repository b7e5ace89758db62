import { beforeEach, expect, it } from '@jest/globals';
import { now, timerAt } from '../../lib/core/deadline.js';
import { Transfers } from '../../lib/core/transfers.js';
import { LockKindMismatchError, LockUnavailableError } from '../../lib/index.js';
import type { ReleaseRequest, TransferReply } from '../../lib/store/index.js';
import { deferred } from '../doubles/deferred.js';

const REQUEST = { name: 'a', owner: 'here:1', next: 'there:1', leaseTime: 5_000, leastToken: 2 };
const GRANT: TransferReply = { granted: true, fencingToken: 2, date: 1 };
const GONE: TransferReply = { granted: false, state: 'deleted', date: 1 };

let answers: (() => Promise<TransferReply>)[];
let sent: number;
let released: { request: ReleaseRequest; until: number; insist: boolean | undefined }[];
let closed: boolean;
/** How long the next request was to wait, ms; here it does not. */
let pauses: number[];
let transfers: Transfers;

const reply = (answer: TransferReply) => () => Promise.resolve(answer);
const fail = (error: Error) => () => Promise.reject(error);
const lost = fail(new LockUnavailableError('a'));
const refused = fail(new LockUnavailableError('a', { effect: 'refused' }));

beforeEach(() => {
  answers = [];
  sent = 0;
  released = [];
  closed = false;
  pauses = [];
  transfers = new Transfers({
    transfer: () => {
      const answer = answers[sent++];
      return answer === undefined ? Promise.reject(new Error('not expected')) : answer();
    },
    releaser: {
      release: (request, until, options) => {
        released.push({ request, until, insist: options?.insist });
        return Promise.resolve(undefined);
      },
    },
    setTimer: (moment, callback) => {
      pauses.push(moment - now());
      return timerAt(now(), callback);
    },
    isClosed: () => closed,
  });
});

const pass = (time = 2_000) => transfers.pass(REQUEST, now() + time, -Infinity);
const takenBack = { request: { name: 'a', owner: 'there:1', leaseTime: 5_000 }, insist: true };

it('a transfer has the time of the request that was answered, and is certain where each was answered', async () => {
  const before = now();
  answers = [refused, reply(GRANT)];
  const passed = await pass();
  expect(passed).toMatchObject({ ...GRANT, isDoubtful: false });
  expect(passed.askedAt).toBeGreaterThanOrEqual(before);
  expect(released).toEqual([]);
});

it('one that was asked for again after no answer is doubtful, and taken back where it was refused then', async () => {
  answers = [lost, refused, reply(GRANT)];
  expect(await pass()).toMatchObject({ granted: true, isDoubtful: true });
  expect(released).toEqual([]);
  [answers, sent] = [[lost, reply(GONE)], 0];
  expect(await pass()).toMatchObject({ granted: false, state: 'deleted', isDoubtful: true });
  expect(released).toMatchObject([takenBack]);
  expect(released[0]?.until).toBeGreaterThan(now() + 4_000);
  [answers, sent, released] = [[reply(GONE)], 0, []];
  expect(await pass()).toMatchObject({ granted: false, isDoubtful: false });
  expect(released).toEqual([]);
});

it('one that can never succeed is not asked for again, and taken back only where it may have been carried out', async () => {
  const mismatch = new LockKindMismatchError('a', { expected: 'plain lock', found: 'fair lock' });
  answers = [fail(mismatch)];
  await expect(pass()).rejects.toBe(mismatch);
  expect([sent, released]).toEqual([1, []]);
  const permanent = (effect: 'refused' | 'unknown') =>
    fail(new LockUnavailableError('a', { permanent: true, effect }));
  [answers, sent] = [[permanent('refused')], 0];
  await expect(pass()).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
  expect([sent, released]).toEqual([1, []]);
  [answers, sent] = [[permanent('unknown')], 0];
  await expect(pass()).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
  expect(sent).toBe(1);
  expect(released).toMatchObject([takenBack]);
});

it('one is asked for again after pauses that become longer', async () => {
  answers = [refused, refused, refused, reply(GRANT)];
  await pass();
  expect(pauses).toHaveLength(3);
  expect(pauses[0]).toBeGreaterThan(20);
  expect(pauses).toEqual([...pauses].sort((a, b) => a - b));
});

it('one is not asked for again after its time', async () => {
  answers = [refused];
  await expect(pass(0)).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
  expect([sent, released]).toEqual([1, []]);
});

it('one that is answered after the end of its lease is none', async () => {
  const short = { ...REQUEST, leaseTime: 30 };
  answers = [() => new Promise((resolve) => setTimeout(resolve, 40, GRANT))];
  await expect(transfers.pass(short, now(), -Infinity)).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
  expect(released).toMatchObject([{ ...takenBack, request: { owner: 'there:1', leaseTime: 30 } }]);
});

it('the end of the client ends it, and what has been asked for is taken back', async () => {
  answers = [
    () => {
      closed = true;
      return refused();
    },
  ];
  await expect(pass()).rejects.toMatchObject({ code: 'LOCK_CLOSED' });
  expect([sent, pauses]).toEqual([1, []]);
  expect(released).toMatchObject([takenBack]);
});

it('the end of the client waits for all that follows the answers', async () => {
  const [first, second] = [deferred(), deferred()];
  let settled = false;
  const runs = [
    transfers.run(() => first.promise.then(() => 'first')),
    transfers.run(() => second.promise.then(() => Promise.reject(new Error('second')))),
  ];
  const failing = expect(runs[1]).rejects.toThrow('second');
  const all = transfers.settled().then(() => (settled = true));
  first.resolve();
  expect(await runs[0]).toBe('first');
  expect(settled).toBe(false);
  second.resolve();
  await failing;
  await all;
  await transfers.settled();
});
