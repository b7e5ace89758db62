import type { ServerResponse } from 'node:http';
import type { Http2Session, Http2Stream } from 'node:http2';

/** How long a client may take to close its connection after the notice of the end, ms. */
const GRACE = 1_000;

/** An answer that goes on. */
export type Stream = ServerResponse | Http2Stream;

/** The stream of an answer of HTTP/2, which Fastify gives in place of one of HTTP/1; else the answer itself. */
export const streamOf = (raw: ServerResponse & { readonly stream?: Http2Stream }): Stream =>
  raw.stream ?? raw;

/**
 * Makes this the last answer on its connection. A page asks again over the connection that it has, and a server that closes would
 * wait for that one for as long as the page goes on.
 */
export function endConnectionAfter(stream: Stream): void {
  if (!('session' in stream)) stream.shouldKeepAlive = false;
  else if (stream.session !== undefined) closeSession(stream.session);
}

/** Requests under way are answered. After that a client that does not close its side is cut off. */
function closeSession(session: Http2Session): void {
  if (session.closed || session.destroyed) return;
  const timer = setInterval(() => {
    if (session.destroyed) socket.destroy();
  }, GRACE).unref();
  // `session.socket` is a proxy that refuses to be destroyed. Its methods return the socket itself.
  const socket = session.socket.on('close', () => {
    clearInterval(timer);
  });
  session.close();
}
