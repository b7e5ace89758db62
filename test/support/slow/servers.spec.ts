import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { transformFile } from '@swc/core';
import { Redis } from 'ioredis';
import { until } from '../../scenarios/until.js';
import { RedisServer } from '../redis-server.js';
import { startRedis } from '../redis.js';

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
  let server: RedisServer;

  beforeEach(async () => {
    server = await RedisServer.start();
  });

  afterEach(async () => {
    await server.stop();
  });

  it('answers as soon as it has started, each server on its own port', async () => {
    const second = await RedisServer.start();
    expect(await Promise.all([server.client().ping(), second.client().ping()])).toEqual(['PONG', 'PONG']);
    expect(second.port).not.toBe(server.port);
    await second.stop();
  });

  it('says why it did not start', async () => {
    await expect(RedisServer.start({ port: server.port })).rejects.toThrow('Address already in use');
    await expect(RedisServer.start({ args: ['--no-such-option', '1'] })).rejects.toThrow('no-such-option');
  });

  it('passes arguments on', async () => {
    const small = await RedisServer.start({ args: ['--maxmemory', '5mb'] });
    expect(await small.client().config('GET', 'maxmemory')).toEqual(['maxmemory', '5242880']);
    await small.stop();
  });

  it('answers nothing while it is frozen, and everything afterwards', async () => {
    await server.client().ping();
    server.freeze();
    const pong = server.client().ping();
    expect(await Promise.race([pong, sleep(100, 'silence')])).toBe('silence');
    server.thaw();
    expect(await pong).toBe('PONG');
  });

  it('is empty after a restart, and its client comes back', async () => {
    const { pid } = server;
    await server.client().set('key', 'value');
    await server.restart();
    expect(await server.client().dbsize()).toBe(0);
    expect(server.pid).not.toBe(pid);
  });

  it('restarts when it is dead or frozen', async () => {
    await server.kill();
    expect(server.pid).toBeUndefined();
    await server.restart();
    server.freeze();
    await server.restart();
    expect(await server.client().ping()).toBe('PONG');
  });

  it('stops when it is dead or frozen, and more than once', async () => {
    server.freeze();
    await server.stop();
    await server.stop();
    expect(server.pid).toBeUndefined();
  });

  it('counts commands', async () => {
    await server.client().set('key', 'value');
    await server.resetCommandCalls();
    expect(await server.commandCalls()).toEqual({});
    await server.client().mget('key', 'other');
    await server.client().eval("redis.call('GET', KEYS[1]) return redis.call('GET', KEYS[1])", 1, 'key');
    expect(await server.commandCalls()).toMatchObject({ mget: 1, eval: 1, get: 2 });
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
