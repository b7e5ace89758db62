import { describe, expect, it } from '@jest/globals';
import { assertClientOptions } from '../../../lib/stores/redis/connection/client-options.js';

const refusal = (options: unknown) => {
  try {
    assertClientOptions('connection', options);
  } catch (error) {
    return error;
  }
  return undefined;
};
/** The option that is refused; undefined if none is. */
const refused = (options: unknown) => (refusal(options) as { option?: string } | undefined)?.option;

describe('The options of a client', () => {
  it('may be any that are not given, or that only ioredis knows', () => {
    expect(refused({ host: 'a', connectTimeout: undefined, url: undefined })).toBeUndefined();
    expect(refused({ enableReadyCheck: 'yes', username: 7, noDelay: true, noDelayed: 1 })).toBeUndefined();
  });

  it.each([
    'connectTimeout',
    'slotsRefreshInterval',
    'retryDelayOnFailover',
    'maxLoadingRetryTime',
    'keepAlive',
  ])('have a time of ms where it is one: %s', (name) => {
    for (const time of [0, 1_000, 2_147_483_647]) expect(refused({ [name]: time })).toBeUndefined();
    for (const time of [-1, 2_147_483_648, 0.5, NaN, null, true])
      expect(refusal({ [name]: time })).toMatchObject({
        option: `connection.${name}`,
        message: expect.stringMatching(/must be a whole number of ms from 0 to 2147483647(?! and no text)/),
      });
    expect(refusal({ [name]: '5' })).toMatchObject({
      message: expect.stringContaining('to 2147483647 and no text: convert it, as by Number(…)'),
    });
  });

  it('have a time by what the name ends in, or a part of it', () => {
    expect(refused({ Timeless: 'x', aTimed: 'x', keepAliveAnd: 'x', unkeepAlive: 'x' })).toBeUndefined();
  });

  it('have a database and a port', () => {
    for (const db of [0, 15, 2_147_483_647]) expect(refused({ db })).toBeUndefined();
    for (const db of [-1, 2_147_483_648]) expect(refused({ db })).toBe('connection.db');
    for (const port of [1, 65_535]) expect(refused({ port })).toBeUndefined();
    for (const port of [0, 65_536, '6379', null]) expect(refused({ port })).toBe('connection.port');
  });

  it('have a host and a name that are no URL, which could show a password', () => {
    for (const name of ['host', 'name']) {
      for (const value of ['localhost', '::1']) expect(refused({ host: 'a', [name]: value })).toBeUndefined();
      for (const value of ['redis://localhost', 'user:secret@localhost', 7])
        expect(refused({ [name]: value })).toBe(`connection.${name}`);
    }
    expect(String(refusal({ host: 7 }))).toContain('must be a text and no URL');
  });

  it.each(['username', 'password', 'sentinelUsername', 'sentinelPassword'])('have %s as a text', (name) => {
    for (const value of ['', 'secret', null]) expect(refused({ [name]: value })).toBeUndefined();
    expect(refused({ [name]: () => 'secret' })).toBe(`connection.${name}`);
  });

  it.each([
    [{ host: 'a', path: undefined, sentinels: undefined, url: undefined }, undefined],
    [{ path: '/run/redis.sock', host: undefined, port: undefined }, undefined],
    [{ name: 'm', sentinels: [{ port: 1 }], host: '', port: undefined }, undefined],
    [{ path: null, sentinels: null }, undefined],
    [{ name: 'm', sentinels: null }, undefined],
    [{ name: 'm', host: 'a' }, undefined],
    [{ name: 'm', path: '/run/redis.sock' }, undefined],
    [{ name: null }, undefined],
    [{ name: 'm' }, 'name'],
    [{ name: 'm', port: 6_379 }, 'name'],
    [{ host: undefined }, 'host'],
    [{ host: 'a', port: undefined }, 'port'],
    [{ path: '' }, 'path'],
    [{ name: 'm', sentinels: undefined }, 'sentinels'],
    [{ url: undefined }, 'url'],
  ])('name a place that has a value, or none: %j', (options, missing) => {
    expect(refused(options)).toBe(missing && `connection.${missing}`);
  });

  it('have a path of a socket, also one with @, and no URL', () => {
    for (const path of ['/run/user@1000.service/redis.sock', '/tmp/redis.sock', 'redis.sock', null])
      expect(refused({ path })).toBeUndefined();
    for (const path of ['redis://localhost', 'user@localhost', '//user@localhost', 7])
      expect(refused({ path })).toBe('connection.path');
  });

  it('have sentinels, whose options are checked as well', () => {
    expect(refused({ sentinels: null })).toBeUndefined();
    const name = 'm';
    expect(refused({ name, sentinels: [{ host: 'a', port: 1 }] })).toBeUndefined();
    for (const sentinels of [[], {}, 'a']) expect(refused({ name, sentinels })).toBe('connection.sentinels');
    expect(refused({ name, sentinels: [{ port: 1 }, { port: 0 }] })).toBe('connection.sentinels[1].port');
    expect(refused({ name, sentinels: ['a'] })).toBe('connection.sentinels[0]');
  });
});

describe('The options of a cluster', () => {
  it('have nodes, each an object, a port or a URL', () => {
    const cluster = [{ host: 'a', port: 1 }, 7_000, '7001', 'redis://localhost', null];
    expect(refused({ cluster })).toBeUndefined();
    for (const none of [[], {}, undefined]) expect(refused({ cluster: none })).toBe('connection.cluster');
    expect(refused({ cluster: [1, { port: 0 }] })).toBe('connection.cluster[1].port');
    expect(refused({ cluster: [0] })).toBe('connection.cluster[0]');
    expect(refused({ cluster: ['70000'] })).toBe('connection.cluster[0]');
  });

  it('have options of their own', () => {
    const cluster = [7_000];
    expect(refused({ cluster, options: undefined })).toBeUndefined();
    expect(refused({ cluster, options: { slotsRefreshTimeout: 1 } })).toBeUndefined();
    expect(refused({ cluster, options: { slotsRefreshTimeout: -1 } })).toBe(
      'connection.options.slotsRefreshTimeout',
    );
    expect(refused({ cluster, options: null })).toBe('connection.options');
  });
});
