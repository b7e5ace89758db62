import { expect } from '@jest/globals';
import type { LockService } from '../../../lib/index.js';

/** What an acquisition is refused with, which would wait for ever. */
export async function refusal(locks: LockService): Promise<string> {
  const error: unknown = await locks
    .acquire('key', { waitTime: Infinity })
    .catch((reason: unknown) => reason);
  expect(error).toMatchObject({ code: 'LOCK_UNAVAILABLE', permanent: true });
  return ((error as Error).cause as Error).message;
}
