import { oncePer } from '../once-per.js';
import type { BoardState, BoardUpdate } from './wire.js';

/** How often viewers get something, ms, so that a connection that is gone is noticed on both ends. */
const BEAT = 5_000;
/** After so many bytes the event loop turns, so that leases are renewed meanwhile. */
const MOST_AT_ONCE = 1_000_000;
/** A short event takes as long as one of so many bytes. */
const LEAST = 10_000;

/** Receives server-sent events. */
export interface Viewer {
  /** The viewer has not read all sent events. Once it has, it is added again. */
  readonly isFull: boolean;
  send(event: Buffer): void;
  /** There will be no more. */
  end(): void;
}

/** The state as JSON, which is made once for all that ask. It may stand in HTML: no tag begins in it. */
export const textOf = oncePer((state: BoardState) =>
  JSON.stringify(state).replaceAll('<', String.raw`\u003c`),
);

const eventOf = (type: 'state' | 'update', json: string): Buffer =>
  Buffer.from(`event: ${type}\ndata: ${json}\n\n`);
const stateEventOf = oncePer((state: BoardState) => eventOf('state', textOf(state)));

/**
 * All viewers of one LockService. A viewer that reads more slowly than the events come misses some, and gets the whole state once it
 * has read the sent part: nothing piles up.
 */
export class Viewers {
  private readonly viewers = new Set<Viewer>();
  /** The update that a viewer is about to be sent; undefined for the whole state. */
  private readonly pending = new Map<Viewer, Buffer | undefined>();
  private beating: NodeJS.Timeout | undefined;
  private sending: NodeJS.Immediate | undefined;

  /** @param present gives the state */
  constructor(private readonly present: () => BoardState) {}

  get size(): number {
    return this.viewers.size;
  }

  /** Sends it the whole state, and then the changes. */
  add(viewer: Viewer): void {
    if (!this.viewers.has(viewer)) this.pending.set(viewer, undefined);
    this.viewers.add(viewer);
    this.sendSoon();
    this.beating ??= setInterval(() => {
      this.tell({ at: Date.now() });
    }, BEAT).unref();
  }

  remove(viewer: Viewer): void {
    this.viewers.delete(viewer);
    this.pending.delete(viewer);
    if (this.viewers.size > 0) return;
    clearInterval(this.beating);
    this.beating = undefined;
  }

  /** A viewer that has not been sent the update before gets the whole state in place of both. */
  tell(update: BoardUpdate): void {
    const event = eventOf('update', JSON.stringify(update));
    for (const viewer of this.viewers) this.pending.set(viewer, this.pending.has(viewer) ? undefined : event);
    this.sendSoon();
  }

  end(): void {
    for (const viewer of [...this.viewers]) {
      this.remove(viewer);
      viewer.end();
    }
  }

  private sendSoon(): void {
    this.sending ??= setImmediate(() => {
      this.sending = undefined;
      this.send();
    });
  }

  private send(): void {
    let sent = 0;
    for (const [viewer, update] of this.pending) {
      if (viewer.isFull) continue;
      if (sent > MOST_AT_ONCE) {
        this.sendSoon();
        return;
      }
      this.pending.delete(viewer);
      const event = update ?? stateEventOf(this.present());
      sent += Math.max(LEAST, event.length);
      viewer.send(event);
      // The state is that of the last look. An update has the time.
      if (update === undefined) viewer.send(eventOf('update', JSON.stringify({ at: Date.now() })));
    }
  }
}
