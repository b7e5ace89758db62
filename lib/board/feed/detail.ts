import { assertName } from '../../client/validation.js';
import type { LockService } from '../../module/lock-service.js';
import type { BoardDetail } from './wire.js';

/** How long an answer serves further viewers, ms. */
const FRESH = 500;

/** Looks at single locks, for viewers that have opened one. */
export class Details {
  private readonly kept = new Map<string, Promise<BoardDetail>>();

  constructor(private readonly service: LockService) {}

  /** @throws LockKeyError for a wrong name, and what `inspect` throws */
  async of(name: string): Promise<BoardDetail> {
    assertName(name);
    const known = this.kept.get(name);
    if (known !== undefined) return await known;
    const detail = this.service.inspect(name).then((lock) => ({ at: Date.now(), lock }));
    this.kept.set(name, detail);
    setTimeout(() => this.kept.delete(name), FRESH).unref();
    return await detail;
  }
}
