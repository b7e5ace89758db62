import type { BoardState, BoardUpdate } from '../view/wire.js';

/** How often viewers get something, ms, so that a connection that is gone is noticed on both ends. */
const BEAT = 5_000;
/** After so many bytes the event loop turns, so that leases are renewed meanwhile. */
const MOST_AT_ONCE = 1_000_000;
/** A short event takes as long as one of so many bytes. */
const LEAST = 10_000;

/** Receives the changes. */
export interface Viewer {
  /** @param events server-sent events, which belong together */
  send(...events: readonly Buffer[]): void;
  /** There will be no more. */
  end(): void;
}

/** The bytes of a server-sent event. All viewers are sent the same ones, so that they are made and kept once. */
export const eventOf = (type: 'state' | 'update', told: BoardState | BoardUpdate): Buffer =>
  Buffer.from(`event: ${type}\ndata: ${JSON.stringify(told)}\n\n`);

/** All viewers of one LockService. */
export class Viewers {
  private readonly viewers = new Set<Viewer>();
  /** The update that a viewer is about to be sent; undefined for the whole state. */
  private readonly pending = new Map<Viewer, Buffer | undefined>();
  private beating: NodeJS.Timeout | undefined;
  private sending: NodeJS.Immediate | undefined;

  /** @param present gives an event with the whole state */
  constructor(private readonly present: () => Buffer) {}

  get size(): number {
    return this.viewers.size;
  }

  /** Sends it the whole state, and then the changes. A viewer that has missed an update is added again. */
  add(viewer: Viewer): void {
    this.viewers.add(viewer);
    this.pending.set(viewer, undefined);
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
    if (this.viewers.size === 0) return;
    const event = eventOf('update', update);
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
      if (sent > MOST_AT_ONCE) {
        this.sendSoon();
        return;
      }
      this.pending.delete(viewer);
      const event = update ?? this.present();
      sent += Math.max(LEAST, event.length);
      // The state is that of the last look. An update has the time.
      if (update === undefined) viewer.send(event, eventOf('update', { at: Date.now() }));
      else viewer.send(event);
    }
  }
}
