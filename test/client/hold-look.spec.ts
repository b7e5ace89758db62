import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { now } from '../../lib/client/holding/deadline.js';
import { HoldLook, type LookAnswer, MESSAGE_ROUND } from '../../lib/client/holding/hold-look.js';
import { Tenure } from '../../lib/client/holding/tenure.js';

let tenures: Tenure[];
let asked: string[];
let answered: [owner: string, sentAt: number, answer: LookAnswer][];
/** Settle the questions, the first one first. */
let settle: ((error?: Error) => void)[];
let look: HoldLook;

beforeEach(() => {
  jest.useFakeTimers();
  [tenures, asked, answered, settle] = [[], [], [], []];
  look = new HoldLook(
    ({ owner }) => {
      asked.push(owner);
      return new Promise<void>((resolve, reject) => {
        settle.push((error) => {
          if (error === undefined) resolve();
          else reject(error);
        });
      });
    },
    ({ owner }, sentAt, answer) => answered.push([owner, sentAt, answer]),
  );
});

afterEach(() => {
  for (const tenure of tenures) tenure.end();
  look.ended();
  jest.useRealTimers();
});

const granted = (owner: string, age = 1_000) => {
  const grant = { owner, fencingToken: 1, grantedAt: now() - age, leaseTime: 30_000 };
  const tenure = new Tenure('a', { leaseTime: 30_000, renewed: true }, grant, () => undefined);
  tenures.push(tenure);
  return tenure;
};
const pass = (time = 0) => jest.advanceTimersByTimeAsync(time);

it('the callers of one turn share one question, and the next ones ask again after its answer', async () => {
  const tenure = granted('me:1');
  void look.lookAt(tenure);
  void look.lookAt(tenure);
  // It has not been sent yet, so it is not older than the doubt.
  look.doubt(tenure);
  await pass();
  expect(asked).toEqual(['me:1']);
  const sentAt = now();
  expect(look.asking).toMatchObject({ tenure, sentAt, sent: true });
  await pass(10);
  settle[0]?.();
  await pass();
  expect(answered).toEqual([['me:1', sentAt, expect.objectContaining({ busy: true, holder: 'me:1' })]]);
  expect(look.asking).toBeUndefined();
  void look.lookAt(tenure);
  await pass();
  expect(asked).toHaveLength(2);
});

it('an answer that does not come is told with its reason', async () => {
  void look.lookAt(granted('me:1'));
  await pass();
  const error = new Error('away');
  settle[0]?.(error);
  await pass();
  expect(answered).toMatchObject([['me:1', {}, error]]);
  expect(look.asking).toBeUndefined();
});

it('a doubt that arises after the question was sent is asked about once more', async () => {
  const tenure = granted('me:1');
  void look.lookAt(tenure);
  await pass();
  look.doubt(tenure);
  look.doubt(tenure);
  await pass();
  expect(asked).toHaveLength(1);
  settle[0]?.();
  await pass();
  expect(asked).toHaveLength(2);
  settle[1]?.();
  await pass();
  expect([asked.length, answered.length]).toEqual([2, 2]);
});

it('a question about another hold follows, unless that hold has ended meanwhile', async () => {
  const [first, second, third] = [granted('me:1'), granted('me:2'), granted('me:3')];
  void look.lookAt(first);
  await pass();
  void look.lookAt(second);
  void look.lookAt(first);
  settle[0]?.();
  await pass();
  expect(asked).toEqual(['me:1', 'me:2']);
  void look.lookAt(third);
  third.end();
  settle[1]?.();
  await pass();
  expect(asked).toEqual(['me:1', 'me:2']);
  expect(answered.map(([owner]) => owner)).toEqual(['me:1', 'me:2']);
});

it('a young hold is looked at when it has outlasted the message of the release before it, once', async () => {
  const tenure = granted('me:1', 0);
  look.doubt(tenure);
  await pass(MESSAGE_ROUND / 2);
  look.doubt(tenure);
  expect(asked).toEqual([]);
  await pass(MESSAGE_ROUND / 2);
  expect(asked).toEqual(['me:1']);
  settle[0]?.();
  await pass(MESSAGE_ROUND);
  expect(asked).toHaveLength(1);
  look.doubt(tenure);
  await pass();
  expect(asked).toHaveLength(2);
});

it('a young hold that is over by then is not looked at, and the next one is', async () => {
  const first = granted('me:1', 0);
  look.doubt(first);
  first.end();
  await pass(MESSAGE_ROUND);
  expect(asked).toEqual([]);
  const second = granted('me:2', 0);
  look.doubt(second);
  look.ended();
  expect(jest.getTimerCount()).toBe(0);
  look.doubt(granted('me:3', 0));
  await pass(MESSAGE_ROUND);
  expect(asked).toEqual(['me:3']);
});
