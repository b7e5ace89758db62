import { describe, expect, it } from '@jest/globals';
import { isLockConfigError } from '../../../lib/index.js';
import { clusterNodes } from '../../../lib/stores/redis/connection/cluster-nodes.js';
import { urlOptions } from '../../../lib/stores/redis/connection/connection-url.js';
import { TestEnvironment } from '../../support/test-environment.js';
import { serverOfAll } from '../../support/test-servers.js';

const PASSWORD = 'pa%ss#4711:/@?&=word';
const encoded = encodeURIComponent(PASSWORD);

describe('A URL is read into options', () => {
  const HOST = { host: 'a', port: 6379 };

  it.each([
    ['redis://a', HOST],
    ['redis://a/', HOST],
    ['redis://a:7/3', { host: 'a', port: 7, db: 3 }],
    ['rediss://a', { ...HOST, tls: {} }],
    ['redis://[::1]:7', { host: '::1', port: 7 }],
    ['redis://a?noDelay=true', { ...HOST, noDelay: true }],
    [`redis://:${encoded}@a`, { ...HOST, password: PASSWORD }],
    [`redis://us%40er:${encoded}@a`, { ...HOST, username: 'us@er', password: PASSWORD }],
    [`redis://a?username=u&password=${encoded}`, { ...HOST, username: 'u', password: PASSWORD }],
    ['redis://a?db=3&family=6&protocol=3', { ...HOST, db: 3, family: 6, protocol: 3 }],
    ['redis://a?connectTimeout=500&keepAlive=0', { ...HOST, connectTimeout: 500, keepAlive: 0 }],
    [
      'redis://a?connectTimeout=1&keepAlive=2147483647',
      { ...HOST, connectTimeout: 1, keepAlive: 2_147_483_647 },
    ],
    [
      'redis://a?noDelay=false&connectionName=n-m&keyPrefix=app:',
      {
        ...HOST,
        noDelay: false,
        connectionName: 'n-m',
        keyPrefix: 'app:',
      },
    ],
  ])('%s', (url, options) => {
    expect(urlOptions('connection', url)).toEqual(options);
  });
});

describe('What is wrong with a URL is told at boot, by its name, and the URL is not repeated', () => {
  it.each([
    ['/foo', /path of the URL must be the number of a database/],
    ['/1/2', /path of the URL/],
    ['/-1', /path of the URL/],
    ['/99999999999', /path of the URL/],
    ['?db=x', /db in the URL must be a whole number/],
    ['/1?db=1', /db in the URL is given more than once/],
    ['?family=4&family=4', /family in the URL is given more than once/],
    ['?family=5', /family in the URL must be 0, 4 or 6/],
    ['?connectTimeout=1e3', /connectTimeout in the URL must be a whole number of ms/],
    ['?connectTimeout=0', /connectTimeout in the URL/],
    ['?connectTimeout=2147483648', /connectTimeout in the URL/],
    ['?noDelay=1', /noDelay in the URL must be true or false/],
    ['?noDelay=toString', /noDelay in the URL must be true or false/],
    ['?noDelay=__proto__', /noDelay in the URL must be true or false/],
    ['?keyPrefix=', /keyPrefix in the URL must be a text/],
    [
      '?connectionName=foo%20bar',
      /connectionName in the URL must be a text of ASCII characters without spaces/,
    ],
    ['?connectionName=', /connectionName in the URL must be a text of ASCII/],
    ['?protocol=4', /protocol in the URL must be 2 or 3/],
    ['?username=twice', /username in the URL is given more than once/],
    ['?tls=true', /tls in the URL is none of connectTimeout, /],
    ['?monitor=true', /monitor in the URL is none of/],
    ['?sentinels=a', /sentinels in the URL is none of/],
    ['?commandTimeout=1', /commandTimeout in the URL is none of/],
    ['?socketTimeout=1', /socketTimeout in the URL is none of/],
    ['?enableOfflineQueue=true', /enableOfflineQueue in the URL is none of/],
    ['?__proto__=1', /a parameter of the URL is none of|__proto__ in the URL is none of/],
    ['?pass-4711-word=', /a parameter of the URL is none of/],
    ['#1', /text after a #/],
  ])('%s', (rest, rule) => {
    for (const options of [
      { connection: `redis://user:pass-4711-word@a${rest}` },
      { connection: { cluster: [`redis://user:pass-4711-word@a${rest}`] } },
      { nodes: ['redis://b', 'redis://c', `redis://user:pass-4711-word@a${rest}`] },
    ]) {
      const error = refusal(options);
      expect(isLockConfigError(error)).toBe(true);
      expect((error as Error).message).toMatch(rule);
      expect((error as Error).message).not.toContain('4711');
    }
  });

  it.each(['redis://:100%@a', 'redis://user%:4711@a'])('%s', (connection) => {
    expect(refusal({ connection })).toMatchObject({
      message: expect.stringMatching(/^connection: .* written %25$/),
    });
  });

  it.each([
    [['redis://a/1'], /cluster\[0\]: a cluster has no other database than 0/],
    [['redis://a', 'redis://a?keyPrefix=x'], /cluster\[1\]: keyPrefix belongs in options\.redisOptions/],
    [['http://user:4711@a'], /cluster\[0\]: a URL must start with/],
    [[null], /cluster\[0\]: must be \{ host, port \}, a port or a URL/],
  ])('of a cluster: %j', (cluster, rule) => {
    const error = refusal({ connection: { cluster } });
    expect((error as Error).message).toMatch(rule);
    expect((error as Error).message).not.toContain('4711');
  });

  it.each([
    ['redis://', /^connection: is not a valid URL/],
    ['redis://a:port', /^connection: is not a valid URL/],
    [
      'a/user:4711',
      /^connection: a URL must start with redis:\/\/ or rediss:\/\/ \(found: text without a scheme\)/,
    ],
  ])('as a whole: %s', (connection, rule) => {
    const error = refusal({ connection }) as Error;
    expect(isLockConfigError(error)).toBe(true);
    expect(error.message).toMatch(rule);
  });

  function refusal(options: object): unknown {
    const environment = new TestEnvironment();
    try {
      return environment.service(options);
    } catch (error) {
      return error;
    } finally {
      void environment.end();
    }
  }
});

it('The nodes of a cluster get what its URLs say, and so do those that the cluster names', () => {
  const given = [
    `rediss://user:${encoded}@a:7/0?connectTimeout=500`,
    'b:8',
    '[::1]:9',
    '10',
    11,
    { host: 'c' },
  ];
  const shared = { tls: {}, username: 'user', password: PASSWORD, connectTimeout: 500 };
  expect(clusterNodes('cluster', given)).toEqual({
    shared,
    nodes: [
      { host: 'a', port: 7, ...shared },
      { host: 'b', port: 8 },
      { host: '::1', port: 9 },
      { host: '127.0.0.1', port: 10 },
      { host: '127.0.0.1', port: 11 },
      { host: 'c', port: 6379 },
    ],
  });
});

describe('By a URL with all that it may have', () => {
  const environment = TestEnvironment.ofEach();
  const server = serverOfAll();

  it('locks and wakes, in that database and with that prefix', async () => {
    const redis = server.client();
    await redis.acl('SETUSER', 'us@er', 'reset', 'on', `>${PASSWORD}`, '~*', '&*', '+@all');
    const more =
      'connectTimeout=5000&keepAlive=1000&noDelay=true&family=4&protocol=3&keyPrefix=app:&connectionName=n';
    const connection = `redis://us%40er:${encoded}@127.0.0.1:${String(server.port)}/3?${more}`;
    const [one, two] = [environment.service({ connection }), environment.service({ connection })];
    const lease = await one.acquire('key');
    const waiting = two.acquire('key', { waitTime: 20_000 });
    while ((await one.inspect('key'))?.waiters.processes !== 1) await new Promise(setImmediate);
    await redis.select(3);
    expect(await redis.hget('app:lock:key', lease.owner)).toBe('1');
    await redis.select(0);
    await lease.release();
    await (await waiting).release();
    expect(await one.health()).toMatchObject({
      status: 'up',
      nodes: [{ node: `127.0.0.1:${String(server.port)}` }],
    });
  });
});
