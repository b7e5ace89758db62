import type { ServerResponse } from 'node:http';
import type { Http2Session, Http2Stream } from 'node:http2';

/** How long a client may take to close its connection after the notice of the end, ms. */
const GRACE = 1_000;

/** The stream of a response of HTTP/2, which Fastify gives in place of one of HTTP/1; undefined for HTTP/1. */
export const streamOf = (raw: ServerResponse & { readonly stream?: Http2Stream }): Http2Stream | undefined =>
  raw.stream;

/**
 * Closes the connection of a viewer. The server waits for it when it closes, and the page would go on asking over it.
 * Requests under way are answered. After that a client that does not close its side is cut off.
 */
export function closeSession(session: Http2Session): void {
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
