import { ForbiddenException } from '@nestjs/common';
import type { BoardRequest } from './request.js';

/**
 * A browser tells the site of each request that changes something, and no page can change that. A form cannot send `X-Board`, and a
 * script of another site needs the leave of the application for it.
 * @throws ForbiddenException for a request that no page of this board has sent, or whose site is not known
 */
export function assertOwnPage({ headers }: BoardRequest): void {
  const site = headers['sec-fetch-site'];
  const isOwn = site === undefined ? isOwnOrigin(headers) : site === 'same-origin';
  if (!isOwn || headers['x-board'] === undefined)
    throw new ForbiddenException('The request does not come from a page of this board; load it again');
}

/**
 * Older browsers, and all over plain HTTP to another host, tell the origin only. It must be the host that is asked for, with its
 * port. Headers of proxies do not count: a script of another site could set them. HTTP/2 has the host in `:authority`.
 */
function isOwnOrigin({ origin = '', host: asked, ...headers }: BoardRequest['headers']): boolean {
  if (!URL.canParse(origin)) return false;
  const { protocol, host } = new URL(origin);
  // In lower case, and without the port that the protocol has anyway.
  const own = `${protocol}//${asked ?? headers[':authority'] ?? ''}`;
  return URL.canParse(own) && new URL(own).host === host;
}
