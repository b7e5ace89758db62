import { LockConfigError } from '../lock.errors.js';

/** Where the next page begins: the cursor of the store's step, and the name in that step after which it goes on. */
export const encodeCursor = (at: string | undefined, after: string): string =>
  Buffer.from(JSON.stringify([at ?? null, after])).toString('base64url');

/** @throws LockConfigError for what is no cursor of a page */
export function decodeCursor(cursor: unknown): [at: string | undefined, after: string] {
  try {
    if (typeof cursor === 'string') {
      const [at, after, ...more] = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as unknown[];
      if ((at === null || typeof at === 'string') && typeof after === 'string' && more.length === 0)
        return [at ?? undefined, after];
    }
  } catch {
    // No JSON, or no array.
  }
  throw new LockConfigError('cursor', 'must be the cursor of a page before', { value: cursor });
}
