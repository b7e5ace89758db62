import { Readable } from 'node:stream';
import { afterAll, describe, expect, it, jest } from '@jest/globals';
import { defer, of } from 'rxjs';
import { LockService } from '../../lib/index.js';

const locks = new LockService({ store: 'memory' });
afterAll(() => locks.onApplicationShutdown());

const begin = jest.fn();
async function* asyncRows() {
  begin();
  yield Promise.resolve(1);
}
function* rows() {
  begin();
  yield 1;
}
const observable = () =>
  defer(() => {
    begin();
    return of(1);
  });

type Use = (callback: () => unknown) => Promise<unknown>;
const FORMS: [string, Use][] = [
  ['LockService.using', (callback) => locks.using('a', callback)],
  ['LockService.using with options', (callback) => locks.using('a', { waitTime: 0 }, callback)],
  ['LockService.using of several', (callback) => locks.using(['a', 'b'], callback)],
  ['Lock.using', (callback) => locks.getLock('a').using(callback)],
  ['a fair lock', (callback) => locks.getFairLock('a').using({ waitTime: 0 }, callback)],
  [
    'a multi-lock',
    (callback) => locks.getMultiLock([locks.getLock('a'), locks.getLock('b')]).using(callback),
  ],
];

describe.each(FORMS)('%s, whose callback gives what is read without the lock', (_, use) => {
  it.each<[string, () => unknown]>([
    ['a generator', rows],
    ['an async generator', asyncRows],
    ['an iterator', () => [1].values()],
    ['a stream', () => Readable.from(asyncRows())],
    ['an Observable', observable],
    ['a Promise of an Observable', async () => Promise.resolve(observable())],
  ])('refuses %s', async (__, give) => {
    begin.mockClear();
    await expect(use(give)).rejects.toMatchObject({
      code: 'LOCK_CONFIG',
      message: expect.stringMatching(/using: has given .*its lock is gone.*in the call/s),
    });
    expect(await locks.getLock('a').isLocked()).toBe(false);
    expect(await locks.getLock('b').isLocked()).toBe(false);
    expect(begin).not.toHaveBeenCalled();
  });

  const mock: object = new Proxy({}, { get: (_, name) => (name === 'then' ? undefined : () => 1) });
  it.each<[string, unknown]>([
    ['an array', [1]],
    ['a Map', new Map()],
    ['a function that gives a stream', () => new Readable()],
    ['a mock that has a function for every name', mock],
    ['nothing', undefined],
  ])('gives %s', async (__, value) => {
    expect(await use(() => value)).toBe(value);
  });
});

it('runInScope holds nothing, and gives what it is given', () => {
  expect([...locks.runInScope(rows)]).toEqual([1]);
});
