import type { BoardUpdate } from '../view/wire.js';

/** How often viewers get something, ms, so that a connection that is gone is noticed on both ends. */
const BEAT = 5_000;

/** What is told of changes. */
export interface Viewer {
  /** @param json the update */
  update(json: string): void;
  /** There will be no more. */
  end(): void;
}

/** All viewers of one LockService: an update becomes text once for all of them. */
export class Viewers {
  private readonly viewers = new Set<Viewer>();
  private beating: NodeJS.Timeout | undefined;

  get size(): number {
    return this.viewers.size;
  }

  add(viewer: Viewer): void {
    this.viewers.add(viewer);
    this.beating ??= setInterval(() => {
      this.tell({ at: Date.now() });
    }, BEAT).unref();
  }

  remove(viewer: Viewer): void {
    this.viewers.delete(viewer);
    if (this.viewers.size > 0) return;
    clearInterval(this.beating);
    this.beating = undefined;
  }

  tell(update: BoardUpdate): void {
    if (this.viewers.size === 0) return;
    const json = JSON.stringify(update);
    for (const viewer of this.viewers) viewer.update(json);
  }

  end(): void {
    for (const viewer of [...this.viewers]) {
      this.remove(viewer);
      viewer.end();
    }
  }
}
