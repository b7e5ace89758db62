import { afterAll, beforeAll, beforeEach } from '@jest/globals';
import type { Redis } from 'ioredis';
import type { Script } from '../../../../lib/stores/redis/commands/script.js';
import { RedisServer } from '../../../support/redis-server.js';

export const LOCK = 'lock';
export const FENCE = 'fence';
export const QUEUE = 'queue';
/** How long a fence outlives its lock, ms. */
export const STAY = 100_000;
/** ms */
export const LEASE = 30_000;
/** What a waiter is granted that has waited for longer than a second, ms. */
export const CLAIM = 1_000;
/** A token that no clock of today has reached. */
export const FAR = 9e15;

/** One lock as its keys, for scripts that are run by hand. All processes named in `listening` hear what they are told. */
export class BareLock {
  redis!: Redis;
  private listener!: Redis;
  private heard: string[] = [];

  /** One on a server for all tests of a file, each of which begins without keys. */
  static set(): BareLock {
    const lock = new BareLock();
    let server: RedisServer;
    beforeAll(async () => {
      server = await RedisServer.start();
      lock.connect(server);
    });
    beforeEach(() => lock.clear());
    afterAll(async () => {
      lock.listener.disconnect();
      await server.stop();
    });
    return lock;
  }

  private connect(server: RedisServer): void {
    this.redis = server.client();
    this.listener = this.redis.duplicate();
    this.listener.on('message', (channel: string, message: string) => {
      this.heard.push(`${channel.replace('lock_queue__channel:', '')}: ${message}`);
    });
  }

  async clear(): Promise<void> {
    await this.redis.flushall();
    if (this.listener.status === 'ready') await this.listener.unsubscribe();
    this.heard = [];
  }

  /** These processes are there. */
  async listen(...clients: string[]): Promise<void> {
    await this.listener.subscribe(...clients.map((client) => `lock_queue__channel:${client}`));
  }

  /** What the processes have been told so far. */
  async told(): Promise<readonly string[]> {
    // The messages were sent before this answer.
    await this.listener.ping();
    return this.heard.splice(0);
  }

  async run(script: Script, ...args: (string | number)[]): Promise<unknown> {
    return await this.redis.eval(script.source, 3, LOCK, FENCE, QUEUE, ...args);
  }

  /** ms of the server's clock */
  async now(): Promise<number> {
    return Math.floor((await this.micros()) / 1_000);
  }

  private async micros(): Promise<number> {
    const [seconds, micros] = await this.redis.time();
    return Number(seconds) * 1e6 + Number(micros);
  }

  /** Holders of a kind with holders, each with the ms after which its hold ends, and what the fence says. */
  async holders(fence: string, holders: Readonly<Record<string, number>>): Promise<Record<string, number>> {
    const now = await this.now();
    const ends = Object.fromEntries(Object.entries(holders).map(([holder, ms]) => [holder, now + ms]));
    for (const [holder, end] of Object.entries(ends)) await this.redis.zadd(LOCK, end, holder);
    const last = Math.max(...Object.values(ends));
    await this.redis.pexpireat(LOCK, last > now ? last : now + STAY);
    await this.fence(fence);
    return ends;
  }

  async fence(text: string): Promise<void> {
    await this.redis.set(FENCE, text, 'PX', STAY);
  }

  /** A plain lock that the owner holds. */
  async plain(owner: string, ms: number, fence = `5 ${owner}`): Promise<void> {
    await this.redis.hset(LOCK, owner, 1);
    await this.redis.pexpire(LOCK, ms);
    await this.fence(fence);
  }

  /** Waiters in this order, each of which has arrived so many ms ago. */
  async waiters(entries: Readonly<Record<string, number>>): Promise<Record<string, number>> {
    const now = await this.micros();
    const arrivals = Object.entries(entries).map(([entry, ago], n) => {
      return [entry, now - ago * 1_000 + n] as const;
    });
    for (const [entry, arrival] of arrivals) await this.redis.zadd(QUEUE, arrival, entry);
    await this.redis.pexpire(QUEUE, STAY);
    return Object.fromEntries(arrivals);
  }

  async queue(): Promise<readonly string[]> {
    return await this.redis.zrange(QUEUE, '0', '-1');
  }

  /** The holders of a kind with holders, each with the end of its hold, ms of the server's clock. */
  async ends(): Promise<Readonly<Record<string, number>>> {
    const flat = await this.redis.zrange(LOCK, '0', '-1', 'WITHSCORES');
    return Object.fromEntries(
      flat.flatMap((holder, n) => (n % 2 === 0 ? [[holder, Number(flat[n + 1])] as const] : [])),
    );
  }

  /** When a key ends, ms of the server's clock. */
  async endOf(key: string): Promise<number> {
    return Number(await this.redis.call('PEXPIRETIME', key));
  }
}
