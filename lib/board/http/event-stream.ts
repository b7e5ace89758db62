import type { ServerResponse } from 'node:http';
import type { Viewer } from '../feed/viewers.js';
import { closeSession, streamOf } from './http2-session.js';

/** A viewer that has read nothing for so many ms is gone, even if its connection is open. */
const STUCK = 60_000;
/** How long a viewer may take to read the rest at the end, ms: the server waits for it when it closes. */
const GRACE = 1_000;

/** Server-sent events for one viewer. */
export class EventStream implements Viewer {
  isFull = false;
  private isOver = false;
  private stuck: NodeJS.Timeout | undefined;

  constructor(
    private readonly raw: ServerResponse,
    private readonly feed: { add(stream: EventStream): void; remove(stream: EventStream): void },
  ) {
    const gone = () => {
      clearTimeout(this.stuck);
      this.over();
    };
    raw.once('close', gone);
    // A stream of HTTP/2 that a viewer resets does not close while there is something to be read.
    streamOf(raw)?.once('aborted', () => {
      raw.destroy();
      gone();
    });
    raw.on('error', gone);
    raw.on('drain', () => {
      if (this.isOver) return;
      clearTimeout(this.stuck);
      this.isFull = false;
      feed.add(this);
    });
    if (!this.isGone) feed.add(this);
  }

  send(event: Buffer): void {
    if (this.isOver || this.raw.write(event)) return;
    this.isFull = true;
    this.destroyAfter(STUCK);
  }

  /** Cuts off a viewer that does not read: the server would wait for it when it closes. */
  end(): void {
    if (this.isOver) return;
    // A stream that is destroyed has no session.
    const session = streamOf(this.raw)?.session;
    if (this.isFull) this.raw.destroy();
    else {
      this.raw.end();
      this.destroyAfter(GRACE);
    }
    this.over();
    if (session !== undefined) closeSession(session);
  }

  /** The viewer may have gone before there was anything to tell: such a connection says nothing more. */
  private get isGone(): boolean {
    const stream = streamOf(this.raw);
    const { closed, destroyed } = stream ?? this.raw;
    return closed || destroyed || stream?.aborted === true;
  }

  private destroyAfter(time: number): void {
    clearTimeout(this.stuck);
    this.stuck = setTimeout(() => {
      this.raw.destroy();
      this.over();
    }, time).unref();
  }

  private over(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.feed.remove(this);
  }
}
