import { setTimeout as sleep } from 'node:timers/promises';
import { TestEnvironment } from '../support/test-environment.js';
import { until } from '../scenarios/until.js';
import type { RedisServer } from '../support/redis-server.js';
import type { Worker, WorkerOptions } from '../support/worker.js';
import { Jvm } from './jvm.js';

/** A server, and processes of both sides that see the same names. */
export class Stage extends TestEnvironment {
  private redis: RedisServer | undefined;

  async open(): Promise<RedisServer> {
    return (this.redis ??= await this.server());
  }

  async jvm(watchdog?: number): Promise<Jvm> {
    const { url } = await this.open();
    const jvm = await Jvm.start(watchdog === undefined ? { url } : { url, watchdog });
    this.add(() => jvm.kill());
    return jvm;
  }

  /** A process with this package, whose names are Redisson's. */
  async node(service: WorkerOptions['service'] = {}): Promise<Worker> {
    const { url } = await this.open();
    return await this.worker({ url, service: { keyPrefix: '', waitTime: 20_000, ...service } });
  }

  /** Waits until so many processes listen for the release of a lock, and until they and others in line have come to rest. */
  async listeners(name: string, count = 1): Promise<void> {
    const client = (await this.open()).client();
    const channel = `redisson_lock__channel:${name.includes('{') ? name : `{${name}}`}`;
    await until(async () => {
      const heard = [await client.pubsub('NUMSUB', channel), await client.pubsub('SHARDNUMSUB', channel)];
      return heard.reduce((sum, [, listening]) => sum + Number(listening), 0) >= count;
    }, 30_000);
    // Who listens tries once more at first: what it is granted then, no message has told.
    await sleep(500);
  }
}
