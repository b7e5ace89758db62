import type { LockModuleOptions } from '../../../lib/index.js';
import type { Line, Process } from '../chaos/history.js';
import type { Random } from '../chaos/random.js';
import { type FaultKind, type Plan, planFor } from './plan.js';
import type { SimulatedResource } from './resource.js';
import type { Struck } from './strikes.js';
import { servingScope, Worker } from './worker.js';
import { Actor } from './world/actor.js';
import { Link } from './world/link.js';
import type { Package, Program } from './world/program.js';
import type { World } from './world/world.js';

/** A server as faults and the history see it. */
export interface SimulatedServer {
  readonly name: string;
  readonly actor: Actor | undefined;
  readonly commands: number;
  readonly allLags: readonly { from: number; to: number }[];
  readonly left: { readonly locks: readonly string[]; readonly connections: number };
  /** @param keeps what it has written down */
  start(keeps?: boolean): void;
  kill(): void;
  forget(lock?: string): void;
  /** As SCRIPT FLUSH. */
  forgetScripts?(): void;
  /** There is no room for more, or there is again. */
  fill?(full: boolean): void;
  /** Does not remove what a process has told of its waits, or does again. */
  keepNotes?(keeps: boolean): void;
  /** Frees what ends later than so many ms from now. */
  freeTheFuture?(longest: number): void;
  /** Its replica gets nothing more, and then takes its place. */
  isolate?(): void;
  failOver?(): void;
  /** Owners of the locks that are held. */
  holds(): { readonly lock: string; readonly owner: string }[];
}

/** How a process reaches its locks. */
export interface Connected {
  readonly options: Pick<LockModuleOptions, 'store' | 'connection' | 'replication'>;
  /** Closes what the process has made itself. */
  readonly close?: () => Promise<unknown>;
}

/** Where the locks of a run live. */
export interface Topology {
  readonly name: string;
  /** Whether locks of all kinds can live here. */
  readonly queues: boolean;
  readonly servers: number;
  /** How many of the servers may be struck at a time. */
  readonly mayBeStruck: number;
  /** A server that forgets has no part in any vote until it cannot matter. */
  readonly forgives: boolean;
  /** Faults that only it can have. */
  readonly faults: readonly FaultKind[];
  /** Where the first of these strikes in a run, the others do not: together they are more than any lock can bear. */
  readonly apart?: readonly FaultKind[];
  /** ms by which the clocks of servers differ. */
  readonly clocksApart: number;
  /** Whether its processes have clients of Redis. */
  readonly hasClients: boolean;
  /** Whether replicas have to confirm each grant. */
  readonly confirmed: boolean;
  server(world: World, name: string, program: Program, ahead: number): SimulatedServer;
  options(
    process: Package,
    actor: Actor,
    links: readonly Link[],
    servers: readonly SimulatedServer[],
    plan: Plan,
    worker: number,
  ): Connected;
}

/** What a process has noted, and the same as text. */
export interface Journal {
  readonly lines: Line[];
  readonly texts: string[];
}

export interface Member {
  readonly name: string;
  readonly actor: Actor;
  /** Undefined until it has come up. */
  worker: Worker | undefined;
  readonly record: Process;
  readonly journal: Journal;
  /** Undefined while it works. */
  ended: boolean;
}

/** All processes and servers of one run, and the ways between them. */
export class Cast {
  readonly servers: readonly SimulatedServer[];
  /** All processes there have been. */
  readonly members: Member[] = [];
  draining = false;
  private readonly present: Member[] = [];
  private readonly links: readonly (readonly Link[])[];
  private readonly struck = new Set<SimulatedServer>();

  constructor(
    readonly world: World,
    readonly plan: Plan,
    private readonly topology: Topology,
    private readonly program: Program,
    private readonly resource: SimulatedResource,
  ) {
    this.servers = Array.from({ length: topology.servers }, (_, index) =>
      topology.server(
        world,
        `server ${String(index)}`,
        program,
        (world.random.next() - 0.5) * 2 * topology.clocksApart,
      ),
    );
    this.links = Array.from({ length: plan.workers }, () => this.servers.map(() => new Link(world)));
    for (let worker = 0; worker < plan.workers; worker++) this.hire(worker);
  }

  get size(): number {
    return this.plan.workers;
  }

  get forgives(): boolean {
    return this.topology.forgives;
  }

  /** Whether nothing strikes a server. */
  get isWhole(): boolean {
    return this.struck.size === 0;
  }

  pick(random: Random): Member | undefined {
    const member = this.present[random.between(0, this.size - 1)];
    return member?.actor.alive === true ? member : undefined;
  }

  linksOf(random: Random): readonly Link[] {
    const way = random.next();
    const server = random.between(0, this.servers.length - 1);
    const worker = random.between(0, this.size - 1);
    if (way < 0.5) return [this.links[worker]![server]!];
    if (way < 0.8) return this.links[worker]!;
    return this.links.map((links) => links[server]!);
  }

  /** The ways of one process to all servers. */
  linksTo(worker: number): readonly Link[] {
    return this.links[worker] ?? [];
  }

  strikeServer(random: Random): SimulatedServer | undefined {
    const server = random.pick(this.servers);
    if (this.struck.has(server) || this.struck.size >= this.topology.mayBeStruck) return undefined;
    this.struck.add(server);
    return server;
  }

  strikeAll(): void {
    for (const server of this.servers) this.struck.add(server);
  }

  healed(server: SimulatedServer): void {
    this.struck.delete(server);
  }

  /** What forgets is forgiven only where each grant was confirmed. */
  failOver(): Struck | undefined {
    const server = this.servers.find((one) => !this.struck.has(one) && one.failOver !== undefined);
    if (server === undefined) return undefined;
    this.struck.add(server);
    server.isolate?.();
    return {
      severity: this.topology.confirmed ? 'outage' : 'loss',
      heal: () => {
        server.failOver?.();
        this.healed(server);
      },
    };
  }

  /** The owners of locks, with the servers that know them. */
  holds(): { lock: string; owner: string; servers: SimulatedServer[] }[] {
    const found = new Map<string, { lock: string; owner: string; servers: SimulatedServer[] }>();
    for (const server of this.servers) {
      for (const { lock, owner } of server.holds()) {
        const known = found.get(`${lock} ${owner}`) ?? { lock, owner, servers: [] };
        known.servers.push(server);
        found.set(`${lock} ${owner}`, known);
      }
    }
    return [...found.values()];
  }

  /** @returns the name of the process; undefined where it is dead already */
  kill(worker: number): string | undefined {
    const member = this.present[worker];
    if (member?.actor.alive !== true || member.ended) return undefined;
    member.actor.kill();
    member.record.lastSeen = this.world.time;
    for (const link of this.links[worker]!) link.cut();
    return member.name;
  }

  hire(worker: number): void {
    const former = this.present[worker];
    if (former?.actor.alive === true || this.draining) return;
    const generation = this.members.filter(({ name }) => name.startsWith(`${String(worker)}.`)).length + 1;
    const name = `${String(worker)}.${String(generation)}`;
    const { world } = this;
    const actor = new Actor(world, name, { ahead: (world.random.next() - 0.5) * 10_000 });
    const record: Process = { name, lags: actor.lags, lastSeen: Infinity, ended: false, errors: [] };
    const journal: Journal = { lines: [], texts: [] };
    const member: Member = { name, actor, record, journal, ended: false, worker: undefined };
    this.present[worker] = member;
    this.members.push(member);
    const delay = world.random.next() * 5;
    world.turn(actor, () => {
      const live = this.begin(member, worker);
      world.after(delay, () => void live(), actor);
    });
  }

  /** The process comes up. @returns how it lives */
  private begin(member: Member, number: number): () => Promise<void> {
    const { topology, resource } = this;
    const plan = planFor(this.plan, number);
    const { name, actor, journal } = member;
    const process = this.program.start(actor);
    const { options: connected, close } = topology.options(
      process,
      actor,
      this.links[number]!,
      this.servers,
      plan,
      number,
    );
    const options = { leaseTime: plan.leaseTime, label: name, lockOrder: 'off' } as const;
    const service = new process.LockService({ ...options, ...connected });
    const leader = new process.LockService({ ...options, store: 'memory' });
    const note = (type: string, op?: number, rest?: object) => {
      if (!actor.alive) return;
      const line = { at: actor.time, type, ...(op === undefined ? {} : { op }), ...rest };
      journal.lines.push(line);
      journal.texts.push(JSON.stringify(line));
    };
    service.events$.subscribe((event) => {
      if (event.type === 'deadlock')
        note('deadlock', undefined, { cycle: event.cycle, broken: event.broken });
    });
    const serving = servingScope(leader);
    const worker = new Worker(actor, service, { plan, number, resource, note }, async (task) =>
      (await serving).serve(task),
    );
    worker.draining = this.draining;
    member.worker = worker;
    return () =>
      this.live(member, async () => {
        await worker.work();
        (await serving).end();
        await leader.onApplicationShutdown();
        service.beforeApplicationShutdown();
        await service.onApplicationShutdown();
        await close?.();
      });
  }

  drain(): void {
    this.draining = true;
    for (const { worker } of this.members) if (worker !== undefined) worker.draining = true;
  }

  /** Of the living, those that have not ended. */
  get hanging(): string[] {
    return this.members.filter(({ actor, ended }) => actor.alive && !ended).map(({ name }) => name);
  }

  private async live(member: Member, work: () => Promise<void>): Promise<void> {
    const { record } = member;
    try {
      await work();
    } catch (error) {
      record.errors.push(String(error));
    }
    member.ended = record.ended = true;
  }
}
