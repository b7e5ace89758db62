import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { charterReply } from '../../../lib/stores/redis/commands/charter.js';
import { UnexpectedReply } from '../../../lib/stores/redis/connection/redis-errors.js';
import * as replies from '../../../lib/stores/redis/commands/replies.js';

const NOT_TOLD = () => undefined;
const DATE = 1_700_000_000_000;
const ARRIVAL = 1_700_000_000_000_000;

/** Each reader, with replies that its script gives, and what they mean. */
const READERS: [
  name: string,
  read: (reply: unknown) => unknown,
  ...genuine: [reply: unknown, meaning: unknown][],
][] = [
  [
    'acquire',
    (reply) => replies.plainReply(reply, NOT_TOLD),
    [17, { granted: true, fencingToken: 17 }],
    ['17', { granted: true, fencingToken: 17 }],
    [[250, 'a:1'], { granted: false, retryAfter: 250, holder: 'a:1' }],
    // It may be gone in this millisecond, or stay without an end.
    [[0, 'a:1'], { granted: false, retryAfter: 0, holder: 'a:1' }],
    [[-1, 'a:1'], { granted: false, retryAfter: Infinity, holder: 'a:1' }],
    // The client's parser rounds a time that is far away.
    [[2 ** 60, 'a:1'], { granted: false, retryAfter: 2 ** 60, holder: 'a:1' }],
    [[-3], { queued: 0 }],
    [
      [250, 'a:1', String(ARRIVAL), DATE, '', 0],
      { granted: false, retryAfter: 250, holder: 'a:1', arrival: ARRIVAL, listen: false },
    ],
    [
      [10, null, String(ARRIVAL), DATE, 'node', 1],
      { granted: false, retryAfter: 10, holder: undefined, arrival: ARRIVAL, listen: true },
    ],
  ],
  [
    'release with another owner that takes a place',
    (reply) => replies.handOverReply(reply, NOT_TOLD),
    [[1, 17, 0], { released: 'released', next: { granted: true, fencingToken: 17, rivals: 'none' } }],
    [[1, 17, 1], { released: 'released', next: { granted: true, fencingToken: 17, rivals: 'queued' } }],
    [[-1, 17, 2], { released: 'taken', next: { granted: true, fencingToken: 17, rivals: 'outside' } }],
    [
      [0, 250, 'a:1', String(ARRIVAL), DATE, '', 0],
      {
        released: 'deleted',
        next: { granted: false, retryAfter: 250, holder: 'a:1', arrival: ARRIVAL, listen: false },
      },
    ],
  ],
  [
    'acquire-all',
    (reply) => replies.plainGroupReply(reply, 2),
    [[17, 18], { granted: true, fencingTokens: [17, 18] }],
    [17, { granted: true, fencingTokens: [17, 17] }],
    ['17', { granted: true, fencingTokens: [17, 17] }],
    [[-2, 250, 'a:1'], { granted: false, index: 1, retryAfter: 250, holder: 'a:1' }],
    [[-1, -1, null], { granted: false, index: 0, retryAfter: Infinity, holder: undefined }],
    [[-1, -3], { queued: 0 }],
    [[-2, -3], { queued: 1 }],
    [[-1], { notALock: 0 }],
    [[-2], { notALock: 1 }],
  ],
  ['leave-turns', (reply) => replies.codeOf(reply, 0, 2), [0, 0], [2, 2]],
  [
    'queue-acquire',
    replies.queueReply,
    [[1, DATE, '', 17], { date: DATE, node: '', reply: { granted: true, fencingToken: 17 } }],
    [
      [0, DATE, 'node', 250, ARRIVAL, null],
      {
        date: DATE,
        node: 'node',
        reply: { granted: false, retryAfter: 250, arrival: ARRIVAL, holder: undefined },
      },
    ],
    [
      [0, String(DATE), 'node', '250', 0, 'a:1'],
      {
        date: DATE,
        node: 'node',
        reply: { granted: false, retryAfter: 250, arrival: undefined, holder: 'a:1' },
      },
    ],
    [[-1, 'fair', 1], { kind: 'fair', capacity: 1 }],
    [[-1, 'read-write', 2 ** 53], { kind: 'read-write', capacity: Number.MAX_SAFE_INTEGER }],
  ],
  ['release', replies.releaseReply, [1, 'released'], [0, 'deleted'], [-1, 'taken'], ['-1', 'taken']],
  [
    'release-all',
    (reply) => replies.releaseReplies(reply, 2),
    [
      [1, -1],
      ['released', 'taken'],
    ],
    [
      ['0', '1'],
      ['deleted', 'released'],
    ],
    [1, ['released', 'released']],
    ['1', ['released', 'released']],
    [
      [1, new Error('own')],
      ['released', new Error('own')],
    ],
  ],
  [
    'transfer',
    replies.transferReply,
    [[1, 17, DATE], { granted: true, fencingToken: 17, date: DATE }],
    [[0, 0, DATE], { granted: false, state: 'deleted', date: DATE }],
    [[-1, 0, DATE], { granted: false, state: 'taken', date: DATE }],
  ],
  ['remember', replies.heldReply, [1, 'held'], [0, 'deleted'], [-1, 'taken']],
  [
    'renew',
    (reply) => replies.renewReply(reply, 3),
    [
      [1, 0, -1],
      ['held', 'deleted', 'taken'],
    ],
    [
      ['1', '-2', '-1'],
      ['held', 'no lock', 'taken'],
    ],
  ],
  [
    'inspect',
    replies.inspectReply,
    [null, null],
    [
      ['17 a:1', 2, ['a:1', 250], [], 0, []],
      { fence: '17 a:1', listeners: 2, holders: [['a:1', 250]], queue: [], withHolders: false, dead: [] },
    ],
    [
      [null, '0', ['xa:1', '250'], ['x b:2', '1.7e+15'], 1, ['b']],
      {
        fence: null,
        listeners: 0,
        holders: [['xa:1', 250]],
        queue: [['x b:2', 1.7e15]],
        withHolders: true,
        dead: ['b'],
      },
    ],
  ],
  [
    'PUBSUB NUMSUB',
    (reply) => replies.countsOf(reply, 2),
    [
      ['one', 2, 'two', 0],
      [2, 0],
    ],
    [
      ['one', '2', 'two', '0'],
      [2, 0],
    ],
  ],
  ['WAIT', (reply) => replies.codeOf(reply, 0, Infinity), [0, 0], [2, 2]],
  ['INFO', replies.infoReply, ['# Server\r\nredis_version:7.0.0\r\n', '# Server\r\nredis_version:7.0.0\r\n']],
];

it('the moment of a note is a number of ms, or unknown', () => {
  expect(replies.sinceReply(0)).toBe(0);
  expect(replies.sinceReply('250')).toBe(250);
  expect(replies.sinceReply(null)).toBeUndefined();
  for (const wrong of ['QUEUED', -1, 1.5, undefined, []])
    expect(() => replies.sinceReply(wrong)).toThrow(UnexpectedReply);
});

it('what a client tells is any text, or unknown', () => {
  expect(replies.clientNoteReply('QUEUED')).toBe('QUEUED');
  expect(replies.clientNoteReply(null)).toBeUndefined();
  for (const wrong of [1, undefined, []])
    expect(() => replies.clientNoteReply(wrong)).toThrow(UnexpectedReply);
});

it("the server's clock is told where a reply has a date", () => {
  const told: [date: number, node: string][] = [];
  const tell = (date: number, node: string) => told.push([date, node]);
  replies.plainReply(17, tell);
  replies.plainReply([250, 'a:1'], tell);
  replies.handOverReply([1, 17, 0], tell);
  expect(told).toEqual([]);
  replies.plainReply([250, 'a:1', String(ARRIVAL), DATE, 'one', 0], tell);
  replies.handOverReply([0, 250, 'a:1', String(ARRIVAL), String(DATE + 1), 'two', 0], tell);
  expect(told).toEqual([
    [DATE, 'one'],
    [DATE + 1, 'two'],
  ]);
});

it('an answer of a queue has as many parts as its outcome asks for', () => {
  for (const wrong of [
    [1, DATE, 'node', 17, 0, null],
    [0, DATE, 'node', 250],
    [-1, 'fair', 1, 1],
  ])
    expect(() => replies.queueReply(wrong)).toThrow(UnexpectedReply);
});

it('a number that no script can mean is no answer', () => {
  // A position behind the last name, and one before the first.
  expect(() => replies.plainGroupReply([-3], 2)).toThrow(UnexpectedReply);
  expect(() => replies.plainGroupReply([0], 2)).toThrow(UnexpectedReply);
  // A token that no lock has, and an answer of one lock that would stand for all.
  expect(() => replies.plainGroupReply(0, 2)).toThrow(UnexpectedReply);
  for (const wrong of [0, -1, 2, null])
    expect(() => replies.releaseReplies(wrong, 2)).toThrow(UnexpectedReply);
  // A PTTL of a key that is gone, or another word in its place.
  expect(() => replies.plainReply([-2, 'a:1'], NOT_TOLD)).toThrow(UnexpectedReply);
  expect(() => replies.plainGroupReply([-1, -2], 2)).toThrow(UnexpectedReply);
  // The counts of one channel, where two were asked for.
  expect(() => replies.countsOf(['one', 2], 2)).toThrow(UnexpectedReply);
});

it('a text is a time only where it is a whole number of ms', () => {
  for (const wrong of ['1e3', '', ' 1', '0x10', null])
    expect(() => replies.plainReply([wrong, 'a:1'], NOT_TOLD)).toThrow(UnexpectedReply);
});

it('a charter is a clock and pairs of fields and values, with numbers', () => {
  const told = ['1700000000000', 'id', 'abc', 'size', '3', 'longest', '500'];
  expect(charterReply(told)).toMatchObject({ time: DATE, charter: { id: 'abc', longest: 500, allowed: 0 } });
  expect(charterReply([DATE])).toEqual({ time: DATE, charter: undefined });
  for (const wrong of ['QUEUED', null, [], [0], ['1', 'id'], told.slice(0, 5), [...told.slice(0, 6), 'long']])
    expect(() => charterReply(wrong)).toThrow(UnexpectedReply);
});

it('an owner without its number is none', () => {
  expect(() => replies.inspectReply([null, 0, ['a:1', 250, 'b:2'], [], 0, []])).toThrow(UnexpectedReply);
});

it.each(['', 'x', '1.5x'])('an owner is followed by a number, and not by %j', (number) => {
  const reply = (holders: unknown[], queue: unknown[]) => [null, 0, holders, queue, 0, []];
  expect(replies.inspectReply(reply(['a:1', '250'], ['p b:2', '1.7e+15']))).not.toBeNull();
  expect(() => replies.inspectReply(reply(['a:1', number], []))).toThrow(UnexpectedReply);
  expect(() => replies.inspectReply(reply([], ['p b:2', number]))).toThrow(UnexpectedReply);
});

const WRONG: unknown[] = [
  'QUEUED',
  'OK',
  '',
  undefined,
  NaN,
  1.5,
  -17,
  2 ** 53,
  '1.5e3',
  true,
  {},
  [],
  [null],
  ['QUEUED'],
  [NaN, 'a:1'],
  [[17]],
  [1, 2, 3, 4, 5, 6, 7],
];

describe.each(READERS)('The reply to %s', (_, read, ...genuine) => {
  it.each(genuine)('may be %j', (reply, meaning) => {
    expect(read(reply)).toEqual(meaning);
  });

  it.each(WRONG.map((reply) => [reply]))('is not %j', (reply) => {
    expect(() => read(reply)).toThrow(UnexpectedReply);
  });

  it('is never one that lacks a part, or has another in its place', () => {
    const parts = fc.oneof(
      fc.constantFrom(null, undefined, NaN, 'QUEUED', -9, 1.5, {}),
      fc.nat(),
      fc.string(),
    );
    const lists = genuine.map(([reply]) => reply).filter(Array.isArray);
    fc.assert(
      fc.property(fc.nat(), fc.nat(), parts, fc.boolean(), (pick, at, part, without) => {
        const whole = lists[pick % Math.max(1, lists.length)] as unknown[] | undefined;
        if (whole === undefined) return;
        const place = at % whole.length;
        const damaged = without ? whole.slice(0, place) : whole.with(place, part);
        let result: unknown;
        try {
          result = read(damaged);
        } catch (error) {
          expect(error).toBeInstanceOf(UnexpectedReply);
          return;
        }
        // Then it is another reply of the same script, and there is no number in it that is none.
        expect(
          JSON.stringify(result, (__, value: unknown) => (Number.isNaN(value) ? 'NaN' : value)),
        ).not.toContain('NaN');
      }),
    );
  });
});
