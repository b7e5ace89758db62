import type { RedisServer } from '../../../support/redis-server.js';
import { TcpProxy } from '../../../support/tcp-proxy.js';

/** What there is between processes and servers: each worker has a way of its own to each server. */
export class Ways {
  private constructor(
    private readonly servers: readonly RedisServer[],
    /** The ways of each worker, in the order of the servers. */
    readonly byWorker: readonly (readonly TcpProxy[])[],
  ) {}

  static async start(servers: readonly RedisServer[], workers: number): Promise<Ways> {
    const start = () => Promise.all(servers.map(({ port }) => TcpProxy.start(port)));
    return new Ways(servers, await Promise.all(Array.from({ length: workers }, start)));
  }

  /** Of all workers. */
  to(server: number): TcpProxy[] {
    return this.byWorker.map((ways) => ways[server]!);
  }

  addresses(worker: number): { host: string; port: number }[] {
    return this.byWorker[worker]!.map(({ port }) => ({ host: '127.0.0.1', port }));
  }

  /** For ioredis: where the worker finds a server that other servers or sentinels name. */
  natMap(worker: number): Record<string, { host: string; port: number }> {
    const addresses = this.addresses(worker);
    return Object.fromEntries(
      this.servers.map(({ port }, index) => [`127.0.0.1:${String(port)}`, addresses[index]!]),
    );
  }

  async stop(): Promise<void> {
    await Promise.all(this.byWorker.flat().map((way) => way.stop()));
  }
}
