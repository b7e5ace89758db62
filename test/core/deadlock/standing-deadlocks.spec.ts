import { expect, it } from '@jest/globals';
import { StandingDeadlocks } from '../../../lib/core/deadlock/standing-deadlocks.js';
import { LockUnavailableError } from '../../../lib/index.js';
import { deferred } from '../../doubles/deferred.js';

it('a look begins when the one before it has ended, also with an error', async () => {
  const answers = [deferred(), deferred()];
  const asked: string[] = [];
  const standing = new StandingDeadlocks(
    {
      inspect: async (name) => {
        const answer = answers[asked.push(name) - 1];
        await answer?.promise;
        if (name === 'first') throw new LockUnavailableError(name, {});
        return null;
      },
    },
    'observer',
  );
  const [first, second] = [standing.look(['first']), standing.look(['second'])];
  await new Promise(setImmediate);
  expect(asked).toEqual(['first']);
  answers[0]?.resolve();
  await expect(first).rejects.toBeInstanceOf(LockUnavailableError);
  await new Promise(setImmediate);
  expect(asked).toEqual(['first', 'second']);
  answers[1]?.resolve();
  expect(await second).toEqual([]);
});
