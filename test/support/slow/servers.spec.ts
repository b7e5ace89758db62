import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { transformFile } from '@swc/core';
import { Redis } from 'ioredis';
import { until } from '../../scenarios/until.js';
import { RedisServer } from '../redis-server.js';
import { startRedis } from '../redis.js';
import { serverOfAll, serverOfEach } from '../test-servers.js';

it('ends a child, even a frozen one, when its parent is killed', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'lock-guard-'));
  const { code } = await transformFile(fileURLToPath(new URL('../guard.ts', import.meta.url)), {
    jsc: { target: 'es2022', parser: { syntax: 'typescript' } },
  });
  const program = `${code}
    const child = spawn('sleep', ['60'], { stdio: 'inherit' });
    guard(child, ${JSON.stringify(directory)});
    child.kill('SIGSTOP');
    console.log('ready');`;
  const parent = spawn(process.execPath, ['--input-type=module', '--eval', program]);
  await once(parent.stdout, 'data');
  parent.kill('SIGKILL');
  // The child has the same output, which closes with the last of them.
  await once(parent, 'close');
  await until(() => !existsSync(directory));
});

describe('RedisServer', () => {
  const server = serverOfEach();

  it('says why it did not start', async () => {
    await expect(RedisServer.start({ port: server.port })).rejects.toThrow('Address already in use');
    await expect(RedisServer.start({ args: ['--no-such-option', '1'] })).rejects.toThrow('no-such-option');
  });

  it('tells what clients send, without its own commands and the inside of scripts', async () => {
    const client = new Redis(server.url);
    await client.ping();
    const monitor = await server.monitor();
    await client.set('key', 'a "quoted" value', 'PX', 1000);
    await server.client().get('key');
    await client.eval("return redis.call('GET', KEYS[1])", 1, 'key');
    await client.get('');
    await monitor.stop();
    expect(monitor.commands).toEqual([
      ['set', 'key', 'a "quoted" value', 'PX', '1000'],
      ['eval', "return redis.call('GET', KEYS[1])", '1', 'key'],
      ['get', ''],
    ]);
    await client.quit();
  });
});

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

  it('says what to do when there is neither a program nor a container', async () => {
    process.env.PATH = '';
    process.env.LOCK_TEST_REDIS_IMAGE = '127.0.0.1:1/none';
    await expect(startRedis()).rejects.toThrow(/Install one.*Docker.*REDIS_URL/);
    await expect(RedisServer.start()).rejects.toThrow('Install one');
  });

  describe('with REDIS_URL', () => {
    const server = serverOfAll();

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
