import { expect, it } from '@jest/globals';
import { setImmediate } from 'node:timers/promises';
import { Labels } from '../../lib/core/labels.js';

it('A store whose labels throw at once disturbs neither a timer, nor a release, nor an answer', async () => {
  const refuse = (): never => {
    throw new Error('broken');
  };
  const labels = new Labels({ labels: { keep: refuse, find: refuse } }, 'client', 'here');
  expect(() => {
    labels.keep();
  }).not.toThrow();
  expect(await labels.find('other:1')).toBeUndefined();
  labels.close();
});

it('A label that is refused is not sent again with each release, however long the lock is kept', async () => {
  let sent = 0;
  const keep = () => {
    sent++;
    return Promise.reject(new Error('NOPERM'));
  };
  const labels = new Labels({ labels: { keep, find: () => Promise.resolve(undefined) } }, 'client', 'here');
  for (const time of [3_600_000, 3_600_000, 0]) {
    labels.keep(time);
    await setImmediate();
  }
  expect(sent).toBe(1);
  labels.close();
});

it('Many that want to know one holder at the same time ask the store once', async () => {
  let asked = 0;
  const find = async () => {
    asked++;
    await setImmediate();
    return undefined;
  };
  const labels = new Labels({ labels: { keep: () => Promise.resolve(), find } }, 'client', 'here');
  const answers = await Promise.all(
    ['other:1', 'other:2', 'kept:other:3'].map((owner) => labels.find(owner)),
  );
  expect(answers).toEqual([undefined, undefined, undefined]);
  expect(asked).toBe(1);
  // A label that was not known may be known by now.
  await labels.find('other:1');
  expect(asked).toBe(2);
  labels.close();
});
