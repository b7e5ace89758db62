import { expect, it } from '@jest/globals';
import { lateResult } from '../../lib/core/late-result.js';

it('a Response with an unread body is late, and one without a body or with a read one is not', async () => {
  const response = new Response('seats');
  expect(lateResult(response)).toBe('a Response');
  await response.text();
  expect(lateResult(response)).toBeUndefined();
  expect(lateResult(new Response(null))).toBeUndefined();
});
