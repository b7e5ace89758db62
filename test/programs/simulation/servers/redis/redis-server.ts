import { Actor } from '../../world/actor.js';
import type { Link, Pipe } from '../../world/link.js';
import type { World } from '../../world/world.js';
import type { SimulatedServer } from '../../cast.js';
import type { Database } from './database.js';
import type { Lua } from './lua.js';
import { RedisModel } from './model.js';
import { Wire } from './wire.js';

/** What derived keys have in them, and keys of locks have not. */
const DERIVED = '~ndl:';

const OWNER = /^\S+:\d+$/;

let runs = 0;

/** A Redis server as a process of its own, perhaps with a replica that takes its place. */
export class RedisServer implements SimulatedServer {
  actor: Actor | undefined;
  /** Of all its lives. */
  readonly lags: { from: number; to: number }[] = [];
  private model!: RedisModel;
  private commandsBefore = 0;
  private readonly wires = new Map<Pipe, Wire>();
  private connections = 0;
  /** What the replica has, since it gets nothing more. Undefined while it has everything. */
  private replicated: Database | undefined;

  constructor(
    readonly world: World,
    readonly name: string,
    private readonly lua: Lua,
    /** ms by which its clock is ahead. */
    private ahead: number,
    private readonly hasReplica: boolean,
  ) {
    this.start();
  }

  static restart(): void {
    runs = 0;
  }

  /** @param keeps what it has written down */
  start(keeps = false): void {
    this.launch(keeps ? this.model.database : undefined);
  }

  /** It is gone, and its connections with it. */
  kill(): void {
    const { actor } = this;
    if (actor === undefined) return;
    this.lags.push(...actor.lags);
    actor.kill();
    this.actor = undefined;
    for (const pipe of [...this.wires.keys()]) pipe.cut();
    this.wires.clear();
  }

  /** From now on the replica gets nothing. */
  isolate(): void {
    this.replicated ??= this.model.database.copy(() => this.model.now());
  }

  /** The replica takes over with what it has, and a clock that is so many ms ahead of the former one. */
  failOver(ahead = 0): void {
    this.ahead += ahead;
    const data = this.replicated;
    this.kill();
    this.launch(data);
    this.replicated = undefined;
  }

  forget(lock?: string): void {
    if (lock === undefined) this.model.database.clear();
    else this.model.database.delete(lock);
  }

  /** As SCRIPT FLUSH. */
  forgetScripts(): void {
    this.model.scripts.forget();
  }

  fill(full: boolean): void {
    this.model.full = full;
  }

  /** What an administrator does when the clock has gone back: frees what would last until the clock is where it was. */
  freeTheFuture(longest: number): void {
    const { database } = this.model;
    for (const key of database.keys())
      if (!key.includes(DERIVED) && (database.find(key)?.expiresAt ?? 0) > this.model.now() + longest)
        database.delete(key);
  }

  get commands(): number {
    const { counts } = this.model;
    return this.commandsBefore + (counts.get('EVAL') ?? 0) + (counts.get('EVALSHA') ?? 0);
  }

  get allLags(): { from: number; to: number }[] {
    return [...this.lags, ...(this.actor?.lags ?? [])];
  }

  holds(): { lock: string; owner: string }[] {
    if (this.actor === undefined) return [];
    const { database } = this.model;
    return database.keys().flatMap((lock) => {
      const value = database.find(lock)?.value;
      const members =
        value?.type === 'hash'
          ? [...value.fields.keys()]
          : value?.type === 'zset'
            ? value.set.all().map(({ member }) => member.slice(1))
            : [];
      return members.filter((owner) => OWNER.test(owner)).map((owner) => ({ lock, owner }));
    });
  }

  get left(): { locks: string[]; connections: number } {
    const { database } = this.model;
    // Fences stay for an hour, on purpose.
    const locks = database.keys().filter((key) => !key.includes(`${DERIVED}fence`));
    return { locks, connections: this.wires.size };
  }

  /** @returns how the client sends */
  accept(pipe: Pipe, link: Link, deliver: (bytes: Buffer) => void, end: () => void): Sending {
    const { actor, model } = this;
    if (actor === undefined) throw new Error('not started');
    const leave = (wire: Wire) => {
      this.forgetWire(wire.pipe, model);
      pipe.send('back', end);
    };
    const replicas = () => ({
      count: this.hasReplica && this.replicated === undefined ? 1 : 0,
      delay: link.latency('there'),
    });
    const wire = new Wire(++this.connections, pipe, link, { actor, model, replicas, leave }, deliver);
    this.wires.set(pipe, wire);
    pipe.onClose.there = () => {
      wire.ends = true;
      this.forgetWire(pipe, model);
    };
    let sent = 0;
    return {
      send: (bytes) => {
        const number = sent++;
        pipe.send('there', () => {
          wire.receive(number, bytes);
        });
      },
      end: () => {
        pipe.send('there', () => {
          if (!wire.ends) leave(wire);
          wire.ends = true;
        });
      },
    };
  }

  private forgetWire(pipe: Pipe, model: RedisModel): void {
    const wire = this.wires.get(pipe);
    if (wire !== undefined) model.messages.leave(wire);
    this.wires.delete(pipe);
  }

  private launch(data: Database | undefined): void {
    const { world, name, ahead } = this;
    const actor = (this.actor = new Actor(world, name, { ahead }));
    const startedAt = actor.wall();
    if (runs > 0 && (this.model as RedisModel | undefined) !== undefined) this.commandsBefore = this.commands;
    this.model = new RedisModel(this.lua, {
      micros: () => Math.floor(actor.exactWall() * 1_000),
      runId: (++runs).toString(16).padStart(40, 'f'),
      uptime: () => (actor.wall() - startedAt) / 1_000,
      replicas: () => (this.hasReplica ? 1 : 0),
    });
    if (data !== undefined) this.model.database = data.copy(() => this.model.now());
  }
}

export interface Sending {
  send(bytes: Uint8Array): void;
  /** Nothing more comes. */
  end(): void;
}
