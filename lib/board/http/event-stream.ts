import type { ServerResponse } from 'node:http';
import type { Viewer } from '../feed/viewers.js';
import type { BoardState } from '../view/wire.js';

/** A viewer that has read nothing for so many ms is gone, whatever its connection says. */
const STUCK = 60_000;

/**
 * Server-sent events for one viewer. A viewer that reads more slowly than the events come misses some, and gets the whole state
 * once it has read what it was sent: nothing piles up.
 */
export class EventStream implements Viewer {
  private isFull = false;
  private isBehind = false;
  private isOver = false;
  private stuck: NodeJS.Timeout | undefined;

  constructor(
    private readonly raw: ServerResponse,
    private readonly present: () => BoardState,
    private readonly onGone: (stream: EventStream) => void,
  ) {
    const gone = () => {
      this.over();
    };
    raw.once('close', gone);
    raw.on('error', gone);
    raw.on('drain', () => {
      clearTimeout(this.stuck);
      this.isFull = false;
      if (!this.isBehind) return;
      this.isBehind = false;
      this.state();
    });
    raw.write('retry: 1000\n\n');
  }

  /** The viewer may have gone before there was anything to tell: such a connection says nothing more. */
  get isGone(): boolean {
    return this.isOver || this.raw.destroyed || this.raw.closed;
  }

  /** Everything that is known now. */
  state(): void {
    this.send('state', JSON.stringify(this.present()));
  }

  update(json: string): void {
    if (this.isFull || this.raw.writableNeedDrain) this.isBehind = true;
    else this.send('update', json);
  }

  /** Cuts off a viewer that does not read: the server would wait for it when it closes. */
  end(): void {
    if (this.isFull) this.raw.destroy();
    else if (!this.isOver) this.raw.end();
    this.over();
  }

  private send(event: string, json: string): void {
    if (this.isOver || this.raw.write(`event: ${event}\ndata: ${json}\n\n`)) return;
    // Kept here: responses of HTTP/2 have no writableNeedDrain.
    this.isFull = true;
    clearTimeout(this.stuck);
    this.stuck = setTimeout(() => {
      this.raw.destroy();
    }, STUCK).unref();
  }

  private over(): void {
    if (this.isOver) return;
    this.isOver = true;
    clearTimeout(this.stuck);
    this.onGone(this);
  }
}
