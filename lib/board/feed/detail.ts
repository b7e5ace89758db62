import type { LockService } from '../../module/lock-service.js';
import { longestWaits } from './longest-waits.js';
import type { BoardDetail, BoardLock, BoardWaits } from './wire.js';

/** How long an answer serves further viewers, ms. */
const FRESH = 500;
const MOST_KEPT = 200;

/** Looks at single locks, for viewers that have opened one. */
export class Details {
  private readonly kept = new Map<string, { readonly at: number; readonly detail: Promise<BoardDetail> }>();

  constructor(private readonly service: LockService) {}

  /** @throws what `inspect` throws */
  of(name: string): Promise<BoardDetail> {
    const known = this.kept.get(name);
    const at = Date.now();
    if (known !== undefined && Math.abs(at - known.at) < FRESH) return known.detail;
    const detail = this.service.inspect(name).then((lock) => ({ at: Date.now(), lock }));
    if (this.kept.size >= MOST_KEPT) this.kept.clear();
    this.kept.set(name, { at, detail });
    return detail;
  }

  /**
   * The waits of the process with this label.
   * @throws what `inspect` throws
   */
  async waitsOf(label: string, locks: readonly BoardLock[]): Promise<BoardWaits> {
    const details = await Promise.all(longestWaits(locks).map(({ name }) => this.of(name)));
    const waits = details.flatMap(({ lock }) => {
      const waiter = lock?.queue.find((one) => one.label === label);
      return lock && waiter ? [{ name: lock.name, since: waiter.since.getTime() }] : [];
    });
    return { waits };
  }
}
