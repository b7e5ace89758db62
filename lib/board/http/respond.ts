import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { LockConfigError, LockKeyError } from '../../api/errors.js';
import { streamOf, type Stream } from './connection.js';

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
  response.writeHead(status, all);
  response.end(body);
}

export const rawOf = (response: BoardResponse): ServerResponse =>
  isReply(response) ? response.raw : response;

/** An answer that goes on. Headers that other parts of the application have set stay. */
export function openStream(response: BoardResponse, headers: Headers): Stream {
  const raw = rawOf(response);
  if (isReply(response)) response.hijack();
  raw.writeHead(200, { ...response.getHeaders(), ...SAFE_HEADERS, ...headers });
  return streamOf(raw);
}

/** The error of a LockService: the request is wrong, or the store does not serve it. */
export const statusOf = (error: unknown): number =>
  error instanceof LockKeyError || error instanceof LockConfigError ? 400 : 503;
