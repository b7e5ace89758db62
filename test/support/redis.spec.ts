import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { RedisServer } from './redis-server.js';
import { startRedis } from './redis.js';

describe('startRedis', () => {
  const environment = process.env;

  beforeEach(() => {
    process.env = { ...environment };
    delete process.env.REDIS_URL;
    delete process.env.LOCK_TEST_REDIS;
  });

  afterEach(() => {
    process.env = environment;
  });

  it('starts a server of its own when there is a program', async () => {
    const redis = await startRedis();
    expect(redis).toBeInstanceOf(RedisServer);
    expect(redis.via).toBe('process');
    await redis.stop();
  });

  it('does so too when LOCK_TEST_REDIS asks for it', async () => {
    process.env.REDIS_URL = 'redis://nobody:1';
    process.env.LOCK_TEST_REDIS = 'process';
    const redis = await startRedis();
    expect(redis.via).toBe('process');
    await redis.stop();
  });

  it('says what to do when there is neither a program nor a container', async () => {
    process.env.PATH = '';
    process.env.LOCK_TEST_REDIS_IMAGE = '127.0.0.1:1/none';
    await expect(startRedis()).rejects.toThrow(/Install one.*Docker.*REDIS_URL/);
    await expect(RedisServer.start()).rejects.toThrow('Install one');
  });

  describe('with REDIS_URL', () => {
    let server: RedisServer;

    beforeAll(async () => {
      server = await RedisServer.start();
    });

    afterAll(async () => {
      await server.stop();
    });

    beforeEach(async () => {
      await server.client().flushall();
      process.env.REDIS_URL = server.url;
    });

    it('gives each Jest worker a database, and leaves it empty', async () => {
      process.env.JEST_WORKER_ID = '2';
      const redis = await startRedis();
      expect([redis.via, redis.url]).toEqual(['url', `${server.url}/14`]);
      await redis.client().set('key', 'value');
      await redis.stop();
      expect(await server.client().info('keyspace')).not.toContain('keys=');
    });

    it('counts from the database that the URL names', async () => {
      process.env.JEST_WORKER_ID = '1';
      process.env.REDIS_URL = `${server.url}/3`;
      const redis = await startRedis();
      expect(redis.url).toBe(`${server.url}/3`);
      await redis.stop();
    });

    it.each(['redis://127.0.0.1:1', 'redis://nobody:wrong@127.0.0.1:<port>'])(
      'says that %s is of no use',
      async (url) => {
        process.env.REDIS_URL = url.replace('<port>', String(server.port));
        await expect(startRedis()).rejects.toThrow(/REDIS_URL.*(ECONNREFUSED|WRONGPASS)/);
      },
    );

    it('does not fall back to another database', async () => {
      const small = await RedisServer.start({ args: ['--databases', '1'] });
      process.env.REDIS_URL = small.url;
      await expect(startRedis()).rejects.toThrow('out of range');
      await small.stop();
    });

    it('flushes what interrupted tests have left, and nothing else', async () => {
      process.env.JEST_WORKER_ID = '1';
      const interrupted = await startRedis();
      await interrupted.client().set('key', 'value');
      const next = await startRedis();
      expect(await next.client().exists('key')).toBe(0);
      await Promise.all([interrupted.stop(), next.stop()]);

      await server.client().select(15);
      await server.client().set('key', 'precious');
      await expect(startRedis()).rejects.toThrow('Database 15 of REDIS_URL is not empty');
      expect(await server.client().get('key')).toBe('precious');
      await server.client().select(0);
    });
  });
});
