import { LockConfigError } from '../../api/errors.js';

/** The begin of the next page. */
export interface ListPosition {
  /** The cursor of a step of the store. */
  readonly at: string | undefined;
  /** The page continues after this name of the step. */
  readonly after: string;
  /**
   * The cursor that the step returned. If the step now returns another one, its names have changed, and the page reads
   * the step from its begin.
   */
  readonly to: string | undefined;
}

export const encodeCursor = ({ at, after, to }: ListPosition): string =>
  Buffer.from(JSON.stringify([at, after, to])).toString('base64url');

/** @throws LockConfigError if the text is not the cursor of a page */
export function decodeCursor(cursor: unknown): ListPosition {
  try {
    if (typeof cursor === 'string') {
      const [at, after, to, ...more] = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as unknown[];
      if (isStep(at) && typeof after === 'string' && isStep(to) && more.length === 0)
        return { at: at ?? undefined, after, to: to ?? undefined };
    }
  } catch {
    // Not JSON, or not an array.
  }
  throw new LockConfigError('cursor', 'must be the cursor of a page before', { value: cursor });
}

const isStep = (value: unknown): value is string | null => value === null || typeof value === 'string';
