import { expect } from '@jest/globals';
import type { LockService } from '../../../lib/index.js';

/** What an acquisition is refused with: at once, and for good. */
export async function refusal(locks: LockService): Promise<string> {
  const asked = performance.now();
  const error: unknown = await locks.acquire('key', { waitTime: 20_000 }).catch((reason: unknown) => reason);
  expect(error).toMatchObject({ code: 'LOCK_UNAVAILABLE', permanent: true });
  expect(performance.now() - asked).toBeLessThan(15_000);
  return ((error as Error).cause as Error).message;
}
