import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { UnexpectedReply } from '../../../lib/stores/redis/redis-errors.js';
import * as replies from '../../../lib/stores/redis/replies.js';

/** Each reader, with a reply that its script gives. */
const READERS: [name: string, read: (reply: unknown) => unknown, ...genuine: unknown[]][] = [
  [
    'acquire',
    (reply) => replies.plainReply(reply, () => undefined),
    17,
    '17',
    [250, 'a:1'],
    [-1, 'a:1'],
    [-3],
    [250, 'a:1', '1700000000000000', 1_700_000_000_000, '', 0],
    [10, null, '1700000000000000', 1_700_000_000_000, 'node', 1],
  ],
  [
    'release with another owner that takes a place',
    (reply) => replies.handOverReply(reply, () => undefined),
    [1, 17, 0],
    [1, 17, 2],
    [0, 250, 'a:1', '1700000000000000', 1_700_000_000_000, '', 0],
  ],
  [
    'acquire-all',
    (reply) => replies.plainGroupReply(reply, 2),
    [17, 18],
    [-2, 250, 'a:1'],
    [-2, 250, null],
    [-1, -3],
    [-1],
  ],
  ['leave-turns', (reply) => replies.codeOf(reply, 0, 2), 0, 2],
  [
    'queue-acquire',
    replies.queueReply,
    [1, 1_700_000_000_000, '', 17],
    [0, 1_700_000_000_000, 'node', 250, 1_700_000_000_000_000, null],
    [0, '1700000000000', 'node', '250', 0, 'a:1'],
    [-1, 'fair', 1],
    [-1, 'read-write', 2 ** 53],
  ],
  ['retire', replies.retireReply, [1, 'fair', 1], [0, 'queued', '1']],
  ['release', replies.releaseReply, 1, 0, -1, '-1'],
  ['release-all', (reply) => replies.releaseReplies(reply, 2), [1, -1], ['0', '1'], [1, new Error('own')]],
  ['renew', (reply) => replies.renewReply(reply, 3), [1, 0, -1], ['1', '0', '-1']],
  ['force-release', (reply) => replies.codeOf(reply, 0, 1), 0, 1],
  [
    'inspect',
    replies.inspectReply,
    null,
    ['17 a:1', 2, ['a:1', 250], [], 0, []],
    [null, '0', ['xa:1', '250'], ['x b:2', '1.7e+15'], 1, ['b']],
  ],
  ['PUBSUB NUMSUB', (reply) => replies.countsOf(reply, 2), ['one', 2, 'two', 0], ['one', '2', 'two', '0']],
  ['WAIT', (reply) => replies.codeOf(reply, 0, Infinity), 0, 2],
  ['INFO', replies.infoReply, '# Server\r\nredis_version:7.0.0\r\n'],
  ['a note', replies.noteReply, null, 'abcdef0123'],
];

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
  it.each(genuine.map((reply) => [reply]))('may be %j', (reply) => {
    expect(() => read(reply)).not.toThrow();
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
    const lists = genuine.filter(Array.isArray);
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
