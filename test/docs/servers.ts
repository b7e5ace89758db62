import { RedisCluster } from '../support/redis-cluster.js';
import { RedisServer } from '../support/redis-server.js';
import { SentinelDeployment } from '../support/sentinel.js';

/** The servers that the pages speak of, started for real. */
export class PageServers {
  private constructor(
    private readonly servers: readonly RedisServer[],
    private readonly sentinel: SentinelDeployment,
    private readonly cluster: RedisCluster,
  ) {}

  static async open(): Promise<PageServers> {
    const servers = ['localhost', 'redis-a', 'redis-b', 'redis-c'].map(() => RedisServer.start());
    return new PageServers(
      await Promise.all(servers),
      await SentinelDeployment.start(),
      await RedisCluster.start(),
    );
  }

  get url(): string {
    return this.servers[0]?.url ?? '';
  }

  /** Code in which the addresses are those of the servers. */
  move(code: string): string {
    const ports = new Map<string, number | undefined>([
      ['localhost:6379', this.servers[0]?.port],
      ...['a', 'b', 'c'].map((name, n) => [`redis-${name}:6379`, this.servers[n + 1]?.port] as const),
      ...[0, 1, 2].map((n) => [`sentinel-${String(n + 1)}:26379`, this.sentinel.ports[n]] as const),
      ...this.cluster.servers.map(({ port }, n) => [`cluster-${String(n + 1)}:6379`, port] as const),
    ]);
    const portOf = (host: string, port: string) => String(ports.get(`${host}:${port}`));
    return code
      .replace(
        /redis:\/\/([\w-]+):(\d+)/g,
        (_, host: string, port: string) => `redis://127.0.0.1:${portOf(host, port)}`,
      )
      .replace(
        /host: '([\w-]+)', port: (\d+)/g,
        (_, host: string, port: string) => `host: '127.0.0.1', port: ${portOf(host, port)}`,
      );
  }

  async close(): Promise<void> {
    const all = [...this.servers, this.sentinel, this.cluster];
    await Promise.all(all.map((place) => place.stop()));
  }
}
