import { assertName } from '../../client/validation.js';
import type { LockService } from '../../module/lock-service.js';
import type { BoardDetail } from './wire.js';

/** How long an answer serves further viewers, ms. */
const FRESH = 500;
const MOST_KEPT = 200;

/** Looks at single locks, for viewers that have opened one. */
export class Details {
  private readonly kept = new Map<string, { readonly at: number; readonly detail: Promise<BoardDetail> }>();

  constructor(private readonly service: LockService) {}

  /** @throws LockKeyError for a wrong name, and what `inspect` throws */
  async of(name: string): Promise<BoardDetail> {
    assertName(name);
    const known = this.kept.get(name);
    const at = Date.now();
    if (known !== undefined && Math.abs(at - known.at) < FRESH) return await known.detail;
    const detail = this.service.inspect(name).then((lock) => ({ at: Date.now(), lock }));
    if (this.kept.size >= MOST_KEPT) this.kept.clear();
    this.kept.set(name, { at, detail });
    return await detail;
  }
}
