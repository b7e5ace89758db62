/**
 * Idle connections that a firewall dropped: the cases that take seconds each. The others, and what the number means, stand in
 * connections.spec.ts.
 */
import { createConnection } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { AbstractConnector, type RedisOptions } from 'ioredis';
import { Stage, until } from '../stage.js';

const stage = Stage.set();

describe('An idle connection that was dropped without a word (pitfall 86)', () => {
  it.each([0, undefined])(
    'is none where a connector of the application counts no bytes: %s',
    async (bytesRead) => {
      class Uncounted extends AbstractConnector {
        constructor(options: unknown) {
          super((options as RedisOptions).disconnectTimeout ?? 0);
        }
        connect() {
          this.stream = createConnection(stage.server.port, '127.0.0.1');
          Object.defineProperty(this.stream, 'bytesRead', { value: bytesRead });
          return Promise.resolve(this.stream);
        }
      }
      const locks = stage.service({
        connection: { host: '127.0.0.1', port: stage.server.port, Connector: Uncounted },
      });
      const told: string[] = [];
      locks.events$.subscribe(({ type }) => told.push(type));
      await (await locks.acquire('warm')).release();
      await sleep(500);
      await (await locks.acquire('warm')).release();
      // As long as a connection that is silent may take for a sign of life.
      await sleep(1_200);
      await (await locks.acquire('warm')).release();
      expect(told).not.toContain('disconnected');
    },
  );

  // The time for a command is 2 s at most, and less with a shorter lease.
  it.each([30_000, 9_000])(
    'is replaced under the first call also if this process was busy while it waited for the answer before: with a lease of %i ms',
    async (leaseTime) => {
      const proxy = await stage.proxy();
      const locks = stage.service({ connection: proxy.url, leaseTime });
      await (await locks.acquire('warm')).release();
      await sleep(500);
      const looking = locks.getLock('warm').isLocked();
      // Until the question has left.
      for (let n = 0; n < 50; n++) await Promise.resolve();
      // As a synchronous piece of work does.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_200);
      await looking;
      await sleep(500);
      proxy.forgetConnections();
      const lease = await locks.tryAcquire('order:7');
      expect(lease?.held).toBe(true);
      await lease?.release();
    },
  );

  it('is none again and again on a network that has become slow', async () => {
    const proxy = await stage.proxy();
    const locks = stage.service({ connection: proxy.url });
    const told: string[] = [];
    locks.events$.subscribe(({ type }) => told.push(type));
    const use = async () => (await locks.acquire('order:7')).release();
    await use();
    proxy.replyDelay(1_200);
    for (let n = 0; n < 2; n++) {
      await sleep(500);
      await use();
    }
    expect(told.filter((type) => type === 'disconnected')).toHaveLength(1);
  });

  it('is none if this process was busy for longer than a connection may be silent, and the answer has arrived', async () => {
    const locks = stage.service({ leaseTime: 3_000 });
    const told: string[] = [];
    locks.events$.subscribe(({ type }) => told.push(type));
    await (await locks.acquire('order:7')).release();
    // As under a request: timers come next, and only then the answers.
    await new Promise(setImmediate);
    const asked = locks.tryAcquire('order:7');
    for (let n = 0; n < 50; n++) await Promise.resolve();
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_200);
    expect((await asked)?.held).toBe(true);
    expect(told).not.toContain('disconnected');
  });

  it('is replaced under a caller that waits, also if it is that for messages alone', async () => {
    const proxy = await stage.proxy();
    const client = stage.client();
    await client.ping();
    // The next connection goes another way, which is that for messages.
    client.options.port = proxy.port;
    const locks = stage.service({ connection: client });
    await stage.hearing(locks);
    const held = await stage.service().acquire('order:7');
    // More than the pause between two questions to it, and less than twice that.
    const waiting = locks.acquire('order:7', { waitTime: 8_000 });
    await until(async () => (await stage.waiting('order:7')) > 0);
    // It asks once by itself after a second.
    await sleep(1_500);
    expect(proxy.connections).toBe(1);
    proxy.forgetConnections();
    await held.release();
    expect((await waiting).held).toBe(true);
  });

  it('is replaced under default calls also if it is in use', async () => {
    const proxy = await stage.proxy();
    const locks = stage.service({ connection: proxy.url });
    const held = await locks.acquire('held');
    const calls: Promise<unknown>[] = [];
    for (let n = 0; n < 60; n++) {
      if (n === 20) proxy.forgetConnections();
      calls.push(locks.acquire(`order:${String(n)}`).then((lease) => lease.release()));
      await sleep(50);
    }
    await Promise.all(calls);
    expect(held.held).toBe(true);
  });

  it('may have carried out what its error calls refused, because that is about the last request', async () => {
    const proxy = await stage.proxy();
    const locks = stage.service({ connection: proxy.url });
    const lease = await locks.acquire('order:7');
    await sleep(500);
    proxy.dropReplies(true);
    proxy.refuse(true);
    await expect(lease.extend(200_000)).rejects.toMatchObject({ effect: 'refused' });
    expect(await stage.ttl('order:7')).toBeGreaterThan(30_000);
  });

  it('is no reason to wait for it: an attempt to connect without an answer is followed by another one', async () => {
    const proxy = await stage.proxy();
    proxy.dropReplies(true);
    const locks = stage.service({ connection: proxy.url });
    const calls = ['order:7', 'order:8'].map((name) => locks.acquire(name));
    await until(() => Promise.resolve(proxy.connections > 0));
    proxy.dropReplies(false);
    // The replies that were swallowed do not come any more.
    for (const lease of await Promise.all(calls)) expect(lease.held).toBe(true);
  });
});
