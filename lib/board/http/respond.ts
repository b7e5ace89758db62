import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { LockConfigError, LockKeyError } from '../../api/errors.js';
import { closeSession, streamOf } from './http2-session.js';

/** A reply of Fastify, as far as the board uses it. */
interface Reply {
  readonly raw: ServerResponse;
  code(status: number): Reply;
  headers(headers: Headers): Reply;
  send(body: string): unknown;
  getHeaders(): OutgoingHttpHeaders;
  hijack(): unknown;
}

export type Headers = Readonly<Record<string, string>>;

/** A response of Express, or a reply of Fastify. */
export type BoardResponse = ServerResponse | Reply;

const isReply = (response: BoardResponse): response is Reply => 'hijack' in response;

/**
 * The rights of the page: it loads files from here, and no inline script or style. Only a page of the
 * application may have it in a frame.
 */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; " +
  "form-action 'self'; frame-ancestors 'self'";

const SAFE_HEADERS: Headers = {
  'Content-Security-Policy': POLICY,
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'SAMEORIGIN',
  'Referrer-Policy': 'same-origin',
  'Cache-Control': 'no-store',
};

/** An answer that no interceptor changes: many applications wrap all answers. */
export function respond(
  response: BoardResponse,
  status: number,
  type: string,
  body: string,
  headers: Headers = {},
): void {
  const all = { ...SAFE_HEADERS, 'Content-Type': `${type}; charset=utf-8`, ...headers };
  if (isReply(response)) {
    response.code(status).headers(all).send(body);
    return;
  }
  const { 'Set-Cookie': cookie, ...others }: Headers = all;
  // `writeHead` puts a header in the place of the one that is there: the application may have set cookies of its own.
  if (cookie !== undefined) response.appendHeader('Set-Cookie', cookie);
  response.writeHead(status, others);
  response.end(body);
}

/** An answer that goes on. Headers that other parts of the application have set stay. */
export function openStream(response: BoardResponse, headers: Headers): ServerResponse {
  const all = { ...SAFE_HEADERS, ...headers };
  if (!isReply(response)) {
    response.writeHead(200, all);
    return response;
  }
  response.hijack();
  response.raw.writeHead(200, { ...response.getHeaders(), ...all });
  return response.raw;
}

/**
 * Makes this the last answer on its connection. A page asks again over the connection that it has, and a server that closes would
 * wait for that one for as long as the page goes on.
 */
export function endConnectionAfter(response: BoardResponse): void {
  const raw = isReply(response) ? response.raw : response;
  const stream = streamOf(raw);
  if (stream === undefined) raw.shouldKeepAlive = false;
  else if (stream.session !== undefined) closeSession(stream.session);
}

/** The error of a LockService: the request is wrong, or the store does not serve it. */
export const statusOf = (error: unknown): number =>
  error instanceof LockKeyError || error instanceof LockConfigError ? 400 : 503;
