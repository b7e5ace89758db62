import { describe, expect, it } from '@jest/globals';
import { isOwnOrigin, isSecure } from '../../../lib/board/http/own-hosts.js';
import type { BoardRequest } from '../../../lib/board/http/request.js';

const request = (headers: BoardRequest['headers'], protocol = 'http'): BoardRequest => ({
  method: 'POST',
  url: '/',
  headers,
  protocol,
});

describe('an origin', () => {
  it.each<[origin: string, BoardRequest['headers']]>([
    ['http://ops.example', { host: 'ops.example' }],
    ['http://ops.example', { host: 'OPS.example:80' }],
    ['https://ops.example', { host: 'ops.example:443' }],
    ['http://ops.example:3000', { host: 'ops.example:3000' }],
    ['https://[::1]:3000', { host: '[::1]:3000' }],
    ['https://ops.example', { ':authority': 'ops.example' }],
    ['https://ops.example', { host: 'inner:3000', 'x-forwarded-host': 'ops.example' }],
    ['https://ops.example', { host: 'inner:3000', 'x-forwarded-host': 'ops.example, middle:8080' }],
    ['https://ops.example', { host: 'inner:3000', 'x-forwarded-host': 'middle:8080,ops.example' }],
    ['https://ops.example', { host: 'inner:3000', 'x-forwarded-host': ['ops.example'] }],
    ['https://ops.example:8443', { host: 'ops.example', 'x-forwarded-port': '8443' }],
    [
      'https://ops.example:8443',
      { host: 'inner', 'x-forwarded-host': 'ops.example', 'x-forwarded-port': '8443' },
    ],
    [
      'https://ops.example:8443',
      { host: 'inner', forwarded: 'for=10.0.0.1;Host="ops.example:8443";proto=https' },
    ],
    [
      'https://ops.example',
      { host: 'inner', forwarded: 'for=10.0.0.1;host=ops.example, for=10.0.0.2;host=middle' },
    ],
  ])('%s is that of the board for %j', (origin, headers) => {
    expect(isOwnOrigin(request(headers), origin)).toBe(true);
  });

  it.each<[origin: string, BoardRequest['headers']]>([
    ['http://ops.example:3001', { host: 'ops.example:3000' }],
    ['https://ops.example:8443', { host: 'ops.example' }],
    ['https://ops.example', { host: 'ops.example:8443' }],
    ['https://ops.example.evil', { host: 'ops.example', 'x-forwarded-host': 'ops.example, inner' }],
    ['https://evil.example', { host: 'ops.example', forwarded: 'for=evil.example;by=evil.example' }],
    ['https://evil.example', { host: 'ops.example', 'x-forwarded-host': '' }],
    ['https://evil.example', { host: 'ops.example', 'x-forwarded-port': 'x, 80' }],
    ['https://evil.example', { host: 'ops.example@evil.example:1' }],
    ['null', { host: 'null' }],
    ['', { host: '' }],
    ['https://', {}],
  ])('%s is another one for %j', (origin, headers) => {
    expect(isOwnOrigin(request(headers), origin)).toBe(false);
  });
});

it.each<[BoardRequest['headers'], protocol: string, boolean]>([
  [{}, 'http', false],
  [{}, 'https', true],
  [{ 'x-forwarded-proto': 'https' }, 'http', true],
  [{ 'x-forwarded-proto': 'https,http' }, 'http', true],
  [{ 'x-forwarded-proto': 'http, https' }, 'http', false],
  [{ forwarded: 'for=10.0.0.1;proto=HTTPS;host=ops.example' }, 'http', true],
  [{ forwarded: 'for=10.0.0.1' }, 'http', false],
])('%j over %s is secure: %s', (headers, protocol, expected) => {
  expect(isSecure(request(headers, protocol))).toBe(expected);
});
