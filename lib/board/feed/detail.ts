import { assertName } from '../../client/validation.js';
import type { LockService } from '../../module/lock-service.js';
import type { BoardDetail } from './wire.js';

/** How long an answer serves further viewers, ms. */
const FRESH = 500;

/**
 * Looks at single locks, for viewers that have opened one.
 * @throws LockKeyError for a wrong name, and what `inspect` throws
 */
export function detailsOf(service: LockService): (name: string) => Promise<BoardDetail> {
  const kept = new Map<string, Promise<BoardDetail>>();
  return async (name) => {
    assertName(name);
    const known = kept.get(name);
    if (known !== undefined) return await known;
    const detail = service.inspect(name).then((lock) => ({ at: Date.now(), lock }));
    kept.set(name, detail);
    setTimeout(() => kept.delete(name), FRESH).unref();
    return await detail;
  };
}
