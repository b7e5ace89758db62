import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { RedisServer } from './redis-server.js';

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
