import { afterAll, afterEach, beforeAll, beforeEach } from '@jest/globals';
import type { LockModuleOptions, LockService } from '../../../lib/index.js';
import { TestEnvironment } from '../../support/test-environment.js';
import { until } from '../../scenarios/until.js';
import type { RedisServer } from '../../support/redis-server.js';
import { TcpProxy } from '../../support/tcp-proxy.js';

/** Several servers that are a quorum, and whoever uses them. */
export class QuorumEnvironment extends TestEnvironment {
  nodes: readonly RedisServer[] = [];

  static async of(count: number): Promise<QuorumEnvironment> {
    const environment = new QuorumEnvironment();
    await environment.open(count);
    return environment;
  }

  /** With new servers for each test. */
  static forEach(count: number): QuorumEnvironment {
    const environment = new QuorumEnvironment();
    beforeEach(() => environment.open(count));
    afterEach(() => environment.end());
    return environment;
  }

  /** With the same servers for all tests. */
  static forAll(count: number): QuorumEnvironment {
    const environment = new QuorumEnvironment();
    beforeAll(() => environment.open(count));
    afterAll(() => environment.end());
    return environment;
  }

  /** Frozen nodes thaw first: services that close ask them. */
  override async end(): Promise<void> {
    for (const node of this.nodes) node.thaw();
    await super.end();
  }

  private async open(count: number): Promise<void> {
    this.nodes = await Promise.all(Array.from({ length: count }, () => this.server()));
  }

  get urls(): string[] {
    return this.nodes.map(({ url }) => url);
  }

  node(index: number): RedisServer {
    const node = this.nodes[index];
    if (node === undefined) throw new Error(`There is no node ${String(index)}`);
    return node;
  }

  /** @param nodes others than the servers themselves, such as proxies to them */
  quorum(
    options: Partial<LockModuleOptions> = {},
    nodes: LockModuleOptions['nodes'] = this.urls,
  ): LockService {
    return this.service({ nodes, ...options });
  }

  /** One way to each node, on which things can be broken. */
  async proxies(): Promise<TcpProxy[]> {
    const proxies = await Promise.all(this.nodes.map(({ port }) => TcpProxy.start(port)));
    for (const proxy of proxies) this.add(() => proxy.stop());
    return proxies;
  }

  /** Who holds the lock on each node, by its own word; undefined where nobody does. */
  async owners(name: string, nodes = this.nodes): Promise<(string | undefined)[]> {
    return await Promise.all(nodes.map(async (node) => (await node.client().hkeys(`lock:${name}`))[0]));
  }

  /** Has somebody else hold the lock on some nodes. */
  async occupy(name: string, indexes: readonly number[], ms = 60_000): Promise<void> {
    for (const index of indexes) {
      const client = this.node(index).client();
      await client
        .multi()
        .hset(`lock:${name}`, `foreign-${String(index)}:1`, 1)
        .pexpire(`lock:${name}`, ms)
        .exec();
    }
  }

  async isFreeEverywhere(name: string, patience?: number): Promise<void> {
    await until(async () => (await this.owners(name)).every((owner) => owner === undefined), patience);
  }

  /** Every node has a connection and a vote. */
  async settled(service: LockService): Promise<void> {
    await until(async () => (await service.health()).nodes.every(({ status }) => status === 'up'));
  }
}

export const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;
