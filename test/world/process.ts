import type { Redis } from 'ioredis';
import type { LockEvent, LockModuleOptions, LockService } from '../../lib/index.js';
import type { LockStore } from '../../lib/store/index.js';
import { simulatedConnection } from '../programs/simulation/servers/redis/client.js';
import { Actor } from '../programs/simulation/world/actor.js';
import { type Direction, Link } from '../programs/simulation/world/link.js';
import type { World } from '../programs/simulation/world/world.js';
import { loadPackage, type Package } from './package.js';
import type { WorldServer } from './server.js';

/** Options of a service, which by default has the connection to the servers of the world. */
export type ProcessOptions = Omit<LockModuleOptions, 'connection' | 'nodes' | 'store'> & {
  /** No server: the memory of this process, or what makes a store with the package of the process. */
  readonly store?: 'memory' | ((own: Package) => LockStore) | undefined;
};

/** A process with a package, a clock and connections of its own. */
export class WorldProcess {
  /** Of the package as this process has loaded it. */
  readonly package: Package;
  readonly events: LockEvent[] = [];
  readonly logs: string[] = [];
  private readonly actor: Actor;
  private readonly links: readonly Link[];
  private readonly service: LockService;

  constructor(
    readonly world: World,
    readonly name: string,
    private readonly servers: readonly WorldServer[],
    options: ProcessOptions,
  ) {
    this.actor = new Actor(world, name, { ahead: (world.random.next() - 0.5) * 10_000 });
    this.links = servers.map(() => new Link(world));
    this.package = loadPackage(this.actor, (level, text) => {
      this.logs.push(`${level} ${String(text)}`);
    });
    this.service = this.serve(options);
    this.service.events$.subscribe((event) => {
      this.events.push(event);
    });
  }

  /** The service of the process. */
  get locks(): LockService {
    this.assertAlive();
    return this.service;
  }

  /** ms of its monotonic clock, which may go up to 0.4 % wrong. */
  get clock(): number {
    return this.actor.monotonic();
  }

  /** A further service in the same process. */
  serve({ store, ...options }: ProcessOptions): LockService {
    return new this.package.LockService({ label: this.name, ...this.placeOf(store), ...options });
  }

  /** A client of a server, for what other programs do. */
  redis(server = 0): Redis {
    const client = new this.package.Redis(this.connection(server));
    client.on('error', () => undefined);
    return client;
  }

  /** The process and the machine that it runs on stand still, suspension of its clock aside. */
  pause(time: number): void {
    this.actor.pause(time);
  }

  /** Stops within its own code, at one of the next times that it reads its clock. */
  stall(time: number, looks = 1): void {
    this.actor.stall = { looks, time };
  }

  /** As `kill -9`. It never acts again. */
  crash(): void {
    this.actor.kill();
    for (const link of this.links) link.cut();
  }

  /** No connection to the servers, or to one of them, until it is mended. @returns how to mend it */
  cut(server?: WorldServer): () => void {
    const links = this.linksTo(server);
    for (const link of links) {
      link.refuses = true;
      link.cut();
    }
    return () => {
      for (const link of links) link.refuses = false;
    };
  }

  /** Connections break, and can be made again at once. */
  disconnect(server?: WorldServer): void {
    for (const link of this.linksTo(server)) link.cut();
  }

  /** For this time nothing arrives, requests (`there`) or replies (`back`); what was sent comes later. */
  silence(direction: Direction, time: number, server?: WorldServer): void {
    for (const link of this.linksTo(server)) link.silentUntil[direction] = this.world.time + time;
  }

  /** Each request (`there`) or reply (`back`) takes so many ms longer. */
  slow(direction: Direction, time: number, server?: WorldServer): void {
    for (const link of this.linksTo(server)) link.slow[direction] = time;
  }

  /** Messages of channels are lost, or arrive again. */
  dropMessages(drops = true, server?: WorldServer): void {
    for (const link of this.linksTo(server)) link.dropsMessages = drops;
  }

  private placeOf(store: ProcessOptions['store']): Pick<LockModuleOptions, 'connection' | 'nodes' | 'store'> {
    if (store !== undefined) return { store: typeof store === 'function' ? store(this.package) : store };
    const nodes = this.servers.map((_, index) => this.connection(index));
    return nodes.length === 1 ? { connection: nodes[0]! } : { nodes };
  }

  private connection(server: number): { readonly host: string } {
    this.assertAlive();
    return simulatedConnection(
      this.package as never,
      this.actor,
      this.links[server]!,
      this.servers[server]!.redis,
    );
  }

  private linksTo(server: WorldServer | undefined): readonly Link[] {
    return server === undefined ? this.links : [this.links[this.servers.indexOf(server)]!];
  }

  private assertAlive(): void {
    if (!this.actor.alive) throw new Error(`${this.name} is dead: a test cannot call its code`);
  }
}
