import { describe, expect, it } from '@jest/globals';
import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { changesBetween, differenceOf } from '../../../lib/board/feed/difference.js';
import type { Snapshot } from '../../../lib/board/feed/snapshot.js';
import { EventStream } from '../../../lib/board/http/event-stream.js';
import { changeOf } from '../../../lib/board/view/own-events.js';
import { summaryOf } from '../../../lib/board/view/summary.js';
import { LockUnavailableError } from '../../../lib/index.js';
import type { BoardHolder, BoardLock } from '../../../lib/board/view/wire.js';

const AT = 1_000_000;

const holder = (label: string, values: Partial<BoardHolder> = {}): BoardHolder => ({
  label,
  since: AT,
  until: AT + 30_000,
  lease: 30_000,
  ...values,
});
const lock = (values: Partial<BoardLock> = {}): BoardLock => ({
  name: 'a',
  kind: 'lock',
  holders: [holder('api-1')],
  token: 1,
  waiting: 0,
  waitingSince: null,
  ...values,
});
const snapshot = (locks: readonly BoardLock[], more = false): Snapshot => ({
  at: AT + 1_000,
  more,
  locks: new Map(locks.map((one) => [one.name, one])),
});
const told = (before: readonly BoardLock[], after: readonly BoardLock[], more = false) =>
  changesBetween(snapshot(before, more), snapshot(after, more)).map(({ type, text }) => [type, text]);

const OWNER = '7d5f2c1e-0000-4000-8000-000000000000:7';

it('a release and a renewal that fail say why, as the connection tells', () => {
  const error = new LockUnavailableError('a', { cause: new Error('connect ECONNREFUSED') });
  const told = [
    changeOf({ type: 'release-failed', name: 'a', label: 'api-1', owner: OWNER, error }),
    changeOf({ type: 'renewal-failed', names: ['a'], labels: ['api-1'], error }),
  ];
  expect(told.map((change) => change?.text)).toEqual(['connect ECONNREFUSED', 'connect ECONNREFUSED']);
});

describe('what is found between two looks at a lock', () => {
  const held = lock();
  const next = lock({ token: 2, holders: [holder('api-2', { since: AT + 900 })] });

  it.each<[string, BoardLock[], BoardLock[], string[][]]>([
    ['nothing', [held], [held], []],
    ['an acquisition', [], [held], [['acquired', 'api-1']]],
    ['a release', [held], [], [['released', 'api-1']]],
    [
      'a release and an acquisition',
      [held],
      [next],
      [
        ['released', 'api-1'],
        ['acquired', 'api-2'],
      ],
    ],
    [
      'a hand-over',
      [lock({ waiting: 2 })],
      [lock({ ...next, waiting: 1 })],
      [['handed-on', 'api-1 → api-2']],
    ],
    [
      'the last hand-over',
      [lock({ waiting: 1 })],
      [next],
      [
        ['handed-on', 'api-1 → api-2'],
        ['waiting-over', ''],
      ],
    ],
    ['the first waiter', [held], [lock({ waiting: 1 })], [['waiting', '1 waiting']]],
    ['a renewal', [held], [lock({ holders: [holder('api-1', { until: AT + 40_000 })] })], []],
    ['answers that took their time', [held], [lock({ holders: [holder('api-1', { since: AT + 400 })] })], []],
    ['a label that is found later', [lock({ holders: [holder(OWNER)] })], [held], []],
    [
      'a reader that came after another one, of which the store then knows the beginning no more',
      [lock({ kind: 'read-write' })],
      [
        lock({
          kind: 'read-write',
          token: 2,
          holders: [holder('api-1', { since: null, until: AT + 40_000 }), next.holders[0]!],
        }),
      ],
      [['acquired', 'api-2']],
    ],
    [
      'one of two permits of a process',
      [lock({ kind: 'semaphore', holders: [holder('api-1', { since: null }), holder('api-1')] })],
      [lock({ kind: 'semaphore' })],
      [['released', 'api-1']],
    ],
    [
      'many readers',
      [],
      [lock({ kind: 'read-write', holders: ['1', '2', '3', '4', '5'].map((label) => holder(label)) })],
      [['acquired', '1, 2, 3 and 2 more']],
    ],
  ])('%s', (_, before, after, changes) => {
    expect(told(before, after)).toEqual(changes);
  });

  it('is not told of locks that come and go where not all are shown', () => {
    expect(told([held], [lock({ name: 'b' })], true)).toEqual([]);
    expect(told([held], [lock({ waiting: 1 })], true)).toEqual([['waiting', '1 waiting']]);
  });

  it('is sent for the locks that differ only', () => {
    const other = lock({ name: 'b' });
    expect(differenceOf(undefined, snapshot([held]))).toEqual({ set: [held], gone: [] });
    expect(differenceOf(snapshot([held, other]), snapshot([{ ...held }]))).toEqual({ set: [], gone: ['b'] });
    expect(differenceOf(snapshot([held]), snapshot([next]))).toEqual({ set: [next], gone: [] });
  });
});

it('The numbers at the top tell no time that is not known', () => {
  const times = (one: BoardLock) =>
    JSON.stringify(summaryOf([one], { at: AT + 5_000, more: false, isUnseen: false }).slice(3));
  expect(times(lock())).toContain('"5 s"');
  const unknown = times(lock({ holders: [holder('Redisson', { since: null })], waiting: 1 }));
  expect(unknown.match(/"–"/g)).toHaveLength(2);
});

/** A connection that takes what it is told to take. */
class SlowConnection extends EventEmitter {
  readonly written: string[] = [];
  writableNeedDrain = false;
  destroyed = false;

  write(text: Buffer | string): boolean {
    this.written.push(String(text));
    return !this.writableNeedDrain;
  }

  end(): void {
    this.destroyed = true;
  }
}

it('A viewer that reads too slowly is sent nothing meanwhile, and the whole state afterwards', () => {
  const connection = new SlowConnection();
  let gone = 0;
  const stream = new EventStream(connection as unknown as ServerResponse, {
    add: (behind) => {
      behind.send(Buffer.from('state'));
    },
    remove: () => gone++,
  });
  stream.send(Buffer.from('1'));
  connection.writableNeedDrain = true;
  for (let n = 0; n < 1_000; n++) stream.send(Buffer.from('2'));
  connection.writableNeedDrain = false;
  connection.emit('drain');
  stream.send(Buffer.from('3'));
  expect(connection.written.slice(1)).toEqual(['1', 'state', '3']);
  connection.emit('close');
  connection.emit('error', new Error('reset'));
  expect(gone).toBe(1);
  stream.send(Buffer.from('4'));
  expect(connection.written).toHaveLength(4);
});
