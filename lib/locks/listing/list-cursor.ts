import { LockConfigError } from '../../api/errors.js';

/** Where the next page begins. */
export interface ListPosition {
  /** The cursor of a step of the store. */
  readonly at: string | undefined;
  /** The name in that step after which the page goes on. */
  readonly after: string;
  /** The cursor that the step has led to. A step that leads elsewhere now has other names, and is read from its beginning. */
  readonly to: string | undefined;
}

export const encodeCursor = ({ at, after, to }: ListPosition): string =>
  Buffer.from(JSON.stringify([at ?? null, after, to ?? null])).toString('base64url');

/** @throws LockConfigError for what is no cursor of a page */
export function decodeCursor(cursor: unknown): ListPosition {
  try {
    if (typeof cursor === 'string') {
      const [at, after, to, ...more] = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as unknown[];
      if (isStep(at) && typeof after === 'string' && isStep(to) && more.length === 0)
        return { at: at ?? undefined, after, to: to ?? undefined };
    }
  } catch {
    // No JSON, or no array.
  }
  throw new LockConfigError('cursor', 'must be the cursor of a page before', { value: cursor });
}

const isStep = (value: unknown): value is string | null => value === null || typeof value === 'string';
