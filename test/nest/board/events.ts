import { until } from '../../scenarios/until.js';
import type { BoardState, BoardUpdate } from '../../../lib/board/feed/wire.js';

/** A viewer of a board: reads its events as a browser does. */
export class EventReader {
  readonly states: BoardState[] = [];
  readonly updates: BoardUpdate[] = [];
  /** Both, in their order. */
  private readonly told: BoardUpdate[] = [];
  /** The server has ended the stream. */
  ended = false;
  private readonly controller = new AbortController();

  private constructor(readonly response: Response) {
    void this.read();
  }

  static async open(url: string): Promise<EventReader> {
    const response = await fetch(url, { headers: { Accept: 'text/event-stream' } });
    return new EventReader(response);
  }

  /**
   * Waits for an update, and counts only what comes from now on. A viewer that has not been sent the update before gets
   * the whole state in place of both.
   */
  async next(isIt: (update: BoardUpdate) => boolean): Promise<BoardUpdate> {
    const from = this.told.length;
    const found = () => this.told.slice(from).find(isIt);
    await until(() => found() !== undefined);
    return found()!;
  }

  async close(): Promise<void> {
    this.controller.abort();
    await this.reader?.cancel().catch(() => undefined);
  }

  private reader: ReadableStreamDefaultReader<Uint8Array> | undefined;

  private async read(): Promise<void> {
    const decoder = new TextDecoder();
    this.reader = this.response.body?.getReader();
    let text = '';
    try {
      for (;;) {
        const part = await this.reader?.read();
        if (part === undefined || part.done) break;
        text += decoder.decode(part.value, { stream: true });
        const events = text.split('\n\n');
        text = events.pop() ?? '';
        for (const event of events) this.take(event);
      }
    } catch {
      // The connection is cut.
    }
    this.ended = true;
  }

  private take(event: string): void {
    const type = /(?:^|\n)event: ([^\n]*)/m.exec(event)?.[1];
    const data = /(?:^|\n)data: ([^\n]*)/m.exec(event)?.[1];
    if (type !== 'state' && type !== 'update') return;
    const told = JSON.parse(data!) as BoardState | BoardUpdate;
    if (type === 'state') this.states.push(told as BoardState);
    else this.updates.push(told);
    this.told.push(told);
  }
}
