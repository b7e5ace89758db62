import { LockKeys } from '../../lib/stores/redis/commands/keys.js';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach } from '@jest/globals';
import { Redis } from 'ioredis';
import { LockService, type LockModuleOptions } from '../../lib/index.js';
import * as scripts from '../../lib/stores/redis/commands/script.js';
import { RedisServer } from '../support/redis-server.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { Worker, type WorkerOptions } from '../support/worker.js';

/**
 * A third of the default lease, ms. Whoever has to wait until a lease runs out in the store waits three times as long,
 * and whoever is woken takes some milliseconds: a slow machine cannot blur the two.
 */
const SOON = 10_000;
/** Only ends what hangs, ms. */
const PATIENCE = 60_000;

/** Fails where the promise takes about as long as a lease. */
export async function soon<T>(promise: Promise<T>): Promise<T> {
  const timer = new AbortController();
  const stalled = sleep(SOON, undefined, { signal: timer.signal, ref: false }).then(() => {
    throw new Error('stalled');
  });
  stalled.catch(() => undefined);
  try {
    return await Promise.race([promise, stalled]);
  } finally {
    timer.abort();
  }
}

/** Waits for something that is about to be so. */
export async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + PATIENCE;
  while (!(await isSo())) {
    if (performance.now() > end) throw new Error(`Not so after ${String(PATIENCE)} ms: ${isSo.toString()}`);
    await sleep(5);
  }
}

/** Does nothing else, not even timers. */
export function blockFor(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/** One Redis per test file, and whatever a test starts on it. */
export class Stage {
  server!: RedisServer;
  private readonly services = new Set<LockService>();
  private readonly others = new Set<{ stop(): Promise<void> }>();

  static set(): Stage {
    const stage = new Stage();
    beforeAll(async () => {
      stage.server = await RedisServer.start();
    });
    beforeEach(async () => {
      // Or else the first use of each costs one round trip more, and a delay is two.
      for (const { source } of Object.values(scripts)) await stage.redis.script('LOAD', source);
      await stage.server.resetCommandCalls();
    });
    afterEach(async () => {
      await stage.clear();
    });
    afterAll(async () => {
      await stage.server.stop();
    });
    return stage;
  }

  get redis(): Redis {
    return this.server.client();
  }

  /** A client as an application would make it: with the defaults of ioredis, unless it says otherwise. */
  client(
    url = this.server.url,
    options: { maxRetriesPerRequest?: number; retryStrategy?: () => number } = {},
  ): Redis {
    const client = new Redis(url, options);
    client.on('error', () => undefined);
    this.others.add({
      stop: async () => {
        client.disconnect();
      },
    });
    return client;
  }

  /** A service as a process of its own would have it: it shares no connection with others. */
  service(options: Partial<LockModuleOptions> = {}): LockService {
    const isElsewhere = options.store !== undefined || options.nodes !== undefined;
    const place = isElsewhere ? {} : { connection: this.server.url };
    const service = new LockService({ ...place, ...options });
    this.services.add(service);
    return service;
  }

  /** Resolves when the service receives messages, for which it has waited. */
  async hearing(service: LockService): Promise<void> {
    const held = await this.service().acquire('heard');
    const leave = new AbortController();
    const waiting = service.acquire('heard', { signal: leave.signal, waitTime: Infinity });
    const left = waiting.catch(() => undefined);
    await until(async () => (await service.health()).nodes[0]?.subscriber === true);
    leave.abort();
    await left;
    await held.release();
  }

  async proxy(port = this.server.port): Promise<TcpProxy> {
    const proxy = await TcpProxy.start(port);
    this.others.add(proxy);
    return proxy;
  }

  async secondServer(): Promise<RedisServer> {
    const server = await RedisServer.start();
    this.others.add(server);
    return server;
  }

  /** A process of its own. */
  async worker(service: WorkerOptions['service'] = {}, url = this.server.url): Promise<Worker> {
    const worker = await Worker.start({ url, service });
    this.others.add({ stop: () => worker.kill() });
    return worker;
  }

  /** What is left of the lock in the store: ms; -2 when nobody holds it. */
  async ttl(name: string): Promise<number> {
    return await this.redis.pttl(`lock:${name}`);
  }

  /** How many processes wait for a plain lock: in its queue, or listening for its release. */
  async waiting(name: string): Promise<number> {
    return (await this.listening(name)) + (await this.redis.zcard(new LockKeys(name, 'lock:', '').queue));
  }

  /** How many processes listen for the release of a plain lock. */
  async listening(name: string): Promise<number> {
    const [, count] = await this.redis.pubsub('NUMSUB', `redisson_lock__channel:{lock:${name}}`);
    return Number(count);
  }

  /** How many scripts have run since the last reset: each is one request of the library. */
  async requests(): Promise<number> {
    const { evalsha = 0, eval: whole = 0 } = await this.server.commandCalls();
    return evalsha + whole;
  }

  private async clear(): Promise<void> {
    if (this.server.pid === undefined) await this.server.restart();
    this.server.thaw();
    await Promise.all([...this.services].map((service) => service.onApplicationShutdown()));
    this.services.clear();
    await Promise.all([...this.others].map((other) => other.stop()));
    this.others.clear();
    await this.redis.flushall();
  }
}
