import type { BoardState, BoardUpdate } from '../view/wire.js';

/** The server sends something every 5 s. After so many ms without anything the connection is taken for dead. */
const SILENCE = 15_000;
/** Pauses between two attempts to connect, ms, more or less by a random half: the pages of one server do not come back all at once. */
const FIRST_PAUSE = 1_000;
const LONGEST_PAUSE = 10_000;
/**
 * A tab that has been hidden for so many ms lets the connection go. It costs the store nothing then, and leaves the connection to
 * the other tabs: a browser has six to a host over HTTP/1.
 */
const HIDDEN = 5_000;

export interface Listener {
  state(state: BoardState): void;
  update(update: BoardUpdate): void;
  /** The connection is lost, and is tried again. @param isRefused the server has answered something else */
  cut(isRefused: boolean): void;
}

/** The events of the server. Reconnects after each cut, and gets the whole state. */
export class Connection {
  private source: EventSource | undefined;
  private silence = 0;
  private retry = 0;
  private hiding = 0;
  private pause = FIRST_PAUSE;

  constructor(
    private readonly url: string,
    private readonly listener: Listener,
  ) {
    document.addEventListener('visibilitychange', () => {
      this.follow();
    });
    window.addEventListener('online', () => {
      if (this.source !== undefined || !document.hidden) this.open();
    });
    window.addEventListener('pagehide', () => {
      this.close();
    });
    // A tab that is opened behind another one is hidden from the start, without an event for it.
    window.addEventListener('pageshow', () => {
      this.follow();
    });
  }

  /** Closes the connection while the tab stays hidden, and opens it when the tab is shown. A tab that is opened hidden waits for that. */
  follow(): void {
    clearTimeout(this.hiding);
    if (document.hidden)
      this.hiding = window.setTimeout(() => {
        this.close();
      }, HIDDEN);
    else if (this.source === undefined) this.open();
  }

  private open(): void {
    this.close();
    const source = (this.source = new EventSource(this.url));
    source.addEventListener('state', ({ data }: MessageEvent<string>) => {
      this.pause = FIRST_PAUSE;
      this.received();
      this.listener.state(JSON.parse(data) as BoardState);
    });
    source.addEventListener('update', ({ data }: MessageEvent<string>) => {
      this.received();
      this.listener.update(JSON.parse(data) as BoardUpdate);
    });
    source.addEventListener('error', () => {
      // A browser tries again by itself unless the answer is no stream of events.
      this.lost(source.readyState === EventSource.CLOSED);
    });
    this.received();
  }

  private close(): void {
    this.source?.close();
    this.source = undefined;
    clearTimeout(this.silence);
    clearTimeout(this.retry);
  }

  private received(): void {
    clearTimeout(this.silence);
    this.silence = window.setTimeout(() => {
      this.lost();
    }, SILENCE);
  }

  /** Not left to the browser, which gives up after an answer that is none, such as that of a proxy. */
  private lost(isRefused = false): void {
    this.close();
    this.listener.cut(isRefused);
    this.retry = window.setTimeout(
      () => {
        this.open();
      },
      this.pause * (0.5 + Math.random()),
    );
    this.pause = Math.min(this.pause * 2, LONGEST_PAUSE);
  }
}
