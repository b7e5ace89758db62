import { headerOf, type BoardRequest } from './request.js';

/**
 * Whether an origin is the address at which the browser has asked for the page: that of the request, or the one that a proxy in
 * front of the application has put into a header. A page of another site cannot set any of these headers.
 */
export function isOwnOrigin(request: BoardRequest, origin: string): boolean {
  if (!URL.canParse(origin)) return false;
  const { host, protocol } = new URL(origin);
  return hostsOf(request).some((own) => hostIn(own, protocol) === host);
}

/** Whether the browser has asked over TLS, as far as this process or a proxy tells. */
export const isSecure = (request: BoardRequest): boolean =>
  request.protocol === 'https' ||
  listOf(headerOf(request, 'x-forwarded-proto'))[0] === 'https' ||
  forwarded(request, 'proto')[0]?.toLowerCase() === 'https';

/** Several proxies make lists of the requested hosts. HTTP/2 has the host in `:authority`. */
function hostsOf(request: BoardRequest): string[] {
  const [port = ''] = listOf(headerOf(request, 'x-forwarded-port'));
  const asked = [headerOf(request, 'host'), headerOf(request, ':authority')].flatMap((host) => host ?? []);
  const hosts = [...asked, ...listOf(headerOf(request, 'x-forwarded-host')), ...forwarded(request, 'host')];
  // A proxy may pass the host on without its port.
  const withPort = /^\d{1,5}$/.test(port) ? hosts.map((host) => `${host}:${port}`) : [];
  return [...hosts, ...withPort];
}

/** The host as the URL of an origin has it: in lower case, and without the port that the protocol has anyway. */
const hostIn = (host: string, protocol: string): string | undefined => {
  const url = `${protocol}//${host}`;
  return URL.canParse(url) ? new URL(url).host : undefined;
};

const listOf = (value: string | undefined): string[] =>
  (value ?? '')
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '');

/** The values of a parameter in the header `Forwarded` (RFC 7239). */
const forwarded = (request: BoardRequest, parameter: string): string[] =>
  (headerOf(request, 'forwarded') ?? '')
    .split(/[;,]/)
    .map((pair) => pair.trim().split('='))
    .filter(([name = '']) => name.toLowerCase() === parameter)
    .map(([, value = '']) => value.replace(/^"|"$/g, ''));
