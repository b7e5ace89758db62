import { randomBytes, timingSafeEqual } from 'node:crypto';
import { ForbiddenException } from '@nestjs/common';
import { isOwnOrigin, isSecure } from './own-hosts.js';
import { headerOf, type BoardRequest } from './request.js';

const COOKIE = 'ndl-board';
const HEADER = 'x-board-token';
const TOKEN = /^[\w-]{24,64}$/;

/**
 * The page's token for requests that change something, and the cookie with it if the browser has none yet. Another site can neither read the token nor set the header that repeats it. No process remembers anything, so a
 * request may go to another one than the page came from.
 */
export function tokenFor(request: BoardRequest): {
  readonly token: string;
  readonly cookie: string | undefined;
} {
  const [known] = cookiesOf(request);
  if (known !== undefined) return { token: known, cookie: undefined };
  const token = randomBytes(18).toString('base64url');
  // Without a path it is for the folder of the page, wherever a proxy has put it.
  return {
    token,
    cookie: `${COOKIE}=${token}; HttpOnly; SameSite=Strict${isSecure(request) ? '; Secure' : ''}`,
  };
}

/** @throws ForbiddenException for a request that no page of this board has sent */
export function assertOwnPage(request: BoardRequest): void {
  const token = headerOf(request, HEADER) ?? '';
  if (!isSameOrigin(request) || !cookiesOf(request).some((cookie) => isEqual(cookie, token)))
    throw new ForbiddenException('The request does not come from the page; load it again');
}

/** As the browser says. A program that is no browser may say nothing, and has no cookie that another site could use. */
function isSameOrigin(request: BoardRequest): boolean {
  const site = headerOf(request, 'sec-fetch-site');
  if (site !== undefined) return site === 'same-origin';
  const origin = headerOf(request, 'origin');
  return origin === undefined || isOwnOrigin(request, origin);
}

function cookiesOf(request: BoardRequest): string[] {
  const pairs = (headerOf(request, 'cookie') ?? '').split(';').map((pair) => pair.trim());
  return pairs
    .filter((pair) => pair.startsWith(`${COOKIE}=`))
    .map((pair) => pair.slice(COOKIE.length + 1))
    .filter((token) => TOKEN.test(token));
}

const isEqual = (one: string, other: string): boolean =>
  one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other));
