import type { BoardState, BoardUpdate } from '../feed/wire.js';

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

interface Listener {
  state(state: BoardState): void;
  update(update: BoardUpdate): void;
  /** The connection is lost, and is tried again. `refused`: the server has answered something else. */
  cut(how: 'lost' | 'refused'): void;
}

/** Listens to the events of the server while the tab is shown. Reconnects after each cut, and gets the whole state. */
export function connect(url: string, listener: Listener): void {
  let source: EventSource | undefined;
  let pause = FIRST_PAUSE;
  let timer = 0;
  let hiding = 0;

  const close = () => {
    source?.close();
    source = undefined;
    clearTimeout(timer);
  };
  /** Not left to the browser, which gives up after an answer that is none, such as that of a proxy. */
  const lost = (how: 'lost' | 'refused') => {
    close();
    listener.cut(how);
    timer = window.setTimeout(open, pause * (0.5 + Math.random()));
    pause = Math.min(pause * 2, LONGEST_PAUSE);
  };
  const received = () => {
    clearTimeout(timer);
    timer = window.setTimeout(lost, SILENCE, 'lost');
  };
  const open = () => {
    close();
    const opened = (source = new EventSource(url));
    opened.addEventListener('state', ({ data }: MessageEvent<string>) => {
      pause = FIRST_PAUSE;
      received();
      listener.state(JSON.parse(data) as BoardState);
    });
    opened.addEventListener('update', ({ data }: MessageEvent<string>) => {
      received();
      listener.update(JSON.parse(data) as BoardUpdate);
    });
    opened.addEventListener('error', () => {
      // A browser tries again by itself unless the answer is no stream of events.
      lost(opened.readyState === EventSource.CLOSED ? 'refused' : 'lost');
    });
    received();
  };
  const follow = () => {
    clearTimeout(hiding);
    if (document.hidden) hiding = window.setTimeout(close, HIDDEN);
    else if (source === undefined) open();
  };
  document.addEventListener('visibilitychange', follow);
  window.addEventListener('online', () => {
    if (!document.hidden) open();
  });
  window.addEventListener('pagehide', close);
  // A tab that is opened behind another one is hidden from the start, without an event for it.
  window.addEventListener('pageshow', follow);
  follow();
}
