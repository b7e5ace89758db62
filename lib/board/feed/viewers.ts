import { now } from '../../client/holding/deadline.js';
import { endConnectionAfter, type Stream } from '../http/connection.js';
import { oncePer } from '../once-per.js';
import { Slices } from './slices.js';
import type { BoardState, BoardUpdate } from './wire.js';

/** How often viewers get something, ms, so that a connection that is gone is noticed on both ends. */
const BEAT = 5_000;
/** A viewer that has left something unread for so many ms is gone, even if its connection is open. */
const STUCK = 30_000;

/** The state as JSON, which is made once for all that ask. It may stand in HTML: no tag begins in it. */
export const textOf = oncePer((state: BoardState) =>
  JSON.stringify(state).replaceAll('<', String.raw`\u003c`),
);

const tick = () =>
  new Promise<void>((resolve) => {
    process.nextTick(resolve);
  });

const eventOf = (type: 'state' | 'update', json: string): Buffer =>
  Buffer.from(`event: ${type}\ndata: ${json}\n\n`);
const stateEventOf = oncePer((state: BoardState) => eventOf('state', textOf(state)));

/** All viewers of one LockService: the streams of their server-sent events, which share the memory of each event. */
export class Viewers {
  /** With the last moment at which each was known to have read all. */
  private readonly readAt = new Map<Stream, number>();
  private readonly queue: (readonly [Stream, Buffer])[] = [];
  private beating: NodeJS.Timeout | undefined;
  private isSending = false;

  get size(): number {
    return this.readAt.size;
  }

  /** Sends it the state, and all updates from then on. @param left the viewer has gone */
  add(viewer: Stream, state: BoardState, left: () => void): void {
    // It may have gone before the store has answered.
    if (viewer.closed || viewer.destroyed) return;
    viewer.once('close', () => {
      this.readAt.delete(viewer);
      if (this.size === 0) clearInterval(this.beating);
      left();
    });
    viewer.on('error', () => undefined);
    // A stream of HTTP/2 that a viewer resets does not close while there is something to be read.
    viewer.once('aborted', () => viewer.destroy());
    if (this.size === 0) this.beating = setInterval(this.beat, BEAT).unref();
    this.readAt.set(viewer, now());
    this.send([viewer], stateEventOf(state));
    // The state is that of the last look. An update has the time.
    this.send([viewer], eventOf('update', JSON.stringify({ at: Date.now() })));
  }

  tell(update: BoardUpdate): void {
    this.send(this.readAt.keys(), eventOf('update', JSON.stringify(update)));
  }

  /** The server would wait for the viewers when it closes. */
  end(): void {
    for (const viewer of this.readAt.keys()) {
      endConnectionAfter(viewer);
      viewer.destroy();
    }
    this.readAt.clear();
    clearInterval(this.beating);
  }

  private readonly beat = (): void => {
    for (const [viewer, readAt] of this.readAt)
      if (!viewer.writableNeedDrain) this.readAt.set(viewer, now());
      else if (now() - readAt > STUCK) viewer.destroy();
    this.tell({ at: Date.now() });
  };

  private send(viewers: Iterable<Stream>, event: Buffer): void {
    for (const viewer of viewers) this.queue.push([viewer, event]);
    if (!this.isSending) void this.sendAll();
  }

  private async sendAll(): Promise<void> {
    this.isSending = true;
    const slices = new Slices();
    for (let next = this.queue.shift(); next !== undefined; next = this.queue.shift()) {
      const [viewer, event] = next;
      if (!viewer.destroyed) viewer.write(event);
      // A connection writes its events when the next tick begins, and that time counts, too.
      await tick();
      await slices.next();
    }
    this.isSending = false;
  }
}
