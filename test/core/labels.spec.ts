import { expect, it } from '@jest/globals';
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
