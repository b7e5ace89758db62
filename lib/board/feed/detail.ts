import type { LockService } from '../../module/lock-service.js';
import type { BoardDetail } from '../view/wire.js';

/** How long an answer serves further viewers, ms. */
const FRESH = 500;
const MOST_KEPT = 100;

/** Looks at single locks, for viewers that have opened one. */
export class Details {
  private readonly kept = new Map<string, { readonly at: number; readonly detail: Promise<BoardDetail> }>();

  constructor(private readonly service: LockService) {}

  /** @throws what `inspect` throws */
  of(name: string): Promise<BoardDetail> {
    const known = this.kept.get(name);
    const at = Date.now();
    if (known !== undefined && Math.abs(at - known.at) < FRESH) return known.detail;
    const detail = this.look(name);
    if (this.kept.size >= MOST_KEPT) this.kept.clear();
    this.kept.set(name, { at, detail });
    return detail;
  }

  private async look(name: string): Promise<BoardDetail> {
    const state = await this.service.inspect(name);
    const at = Date.now();
    if (state === null) return { at, name, lock: null };
    const { kind, holders, queue, fencingToken, waiters } = state;
    return {
      at,
      name,
      lock: {
        kind,
        token: fencingToken ?? null,
        holders: holders.map(({ label, owner, mode, since, remainingTime }) => ({
          label: label ?? null,
          owner,
          mode,
          since: since?.getTime() ?? null,
          until: remainingTime === Infinity ? null : at + remainingTime,
        })),
        queue: queue.map(({ label, owner, mode, since }) => ({
          label: label ?? null,
          owner,
          mode,
          since: since.getTime(),
        })),
        listeners: kind === 'lock' ? Math.max(0, waiters.processes - queue.length) : 0,
      },
    };
  }
}
