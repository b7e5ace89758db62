import type { Redis } from 'ioredis';
import type {
  AcquisitionGuard,
  Argument,
  Command,
  Receipt,
} from '../../lib/stores/redis/commands/command.js';
import type { Deployment, Server } from '../../lib/stores/redis/connection/deployment.js';
import type { ConnectionChange } from '../../lib/store/store-health.js';
import type { Script } from '../../lib/stores/redis/commands/script.js';
import { answered } from './replies.js';

/** What is answered: an error is thrown. */
type Answer = (command: readonly unknown[]) => unknown;

/** A server that answers each command by a function. For answers that a real one gives rarely, or several of them at once. */
export class ScriptedServer implements Server {
  isDown = false;
  generation = 1;
  readonly sent: (readonly unknown[])[] = [];

  constructor(
    readonly node: string,
    private readonly answer: Answer = () => undefined,
  ) {}

  outage(): Error {
    return new Error(`${this.node} is away`);
  }

  generationOf(): number {
    return this.generation;
  }

  run(_: Script, keys: readonly string[], args: readonly Argument[]): Promise<unknown> {
    return this.ask('script', ...keys, ...args);
  }

  private ask(...sent: readonly unknown[]): Promise<unknown> {
    this.sent.push(sent);
    return answered(() => this.answer(sent));
  }

  async send<T>(command: (client: Redis) => Promise<T>): Promise<T> {
    const ask = (...sent: readonly unknown[]) => this.ask(...sent);
    const client: unknown = new Proxy(
      {},
      {
        get: (_, name) => {
          if (name === 'createBuiltinCommand')
            return (own: string) => ({ string: (...args: unknown[]) => ask(own, ...args) });
          if (name === 'call') return ask;
          return (...args: unknown[]) => ask(name, ...args);
        },
      },
    );
    return await command(client as Redis);
  }
}

/** A script as it was asked for. */
export interface Run extends Command {
  readonly script: Script;
  readonly acquisition: AcquisitionGuard | undefined;
}

interface DeploymentScript {
  isCluster?: boolean;
  sharded?: boolean;
  servers?: readonly Server[];
  /** @default the first server */
  nodeOf?: (key: string) => Server | undefined;
  groupOf?: (key: string) => number;
  /** What a script answers; an error is thrown. */
  run?: (run: Run) => unknown;
}

/** A deployment whose servers and scripts answer by functions. */
export class ScriptedDeployment implements Deployment {
  readonly node = 'deployment';
  readonly keyPrefix = '';
  readonly isCluster: boolean;
  readonly sharded: boolean;
  generation = 1;
  readonly runs: Run[] = [];
  closed = false;
  private readonly listeners: ((change: ConnectionChange) => void)[] = [];

  constructor(private readonly script: DeploymentScript) {
    this.isCluster = script.isCluster ?? false;
    this.sharded = script.sharded ?? false;
  }

  refresh(): Promise<void> {
    return Promise.resolve();
  }

  learnSharding(): Promise<void> {
    return Promise.resolve();
  }

  run(
    script: Script,
    keys: readonly string[],
    args: readonly Argument[],
    acquisition?: AcquisitionGuard,
    receipt?: Receipt,
  ): Promise<unknown> {
    const run = { script, keys, args, acquisition };
    const server = this.nodeOf(keys[0] ?? '');
    if (receipt !== undefined && server !== undefined)
      Object.assign(receipt, { server, generation: server.generationOf() });
    this.runs.push(run);
    return answered(() => this.script.run?.(run));
  }

  groupOf(key: string): number {
    return this.script.groupOf?.(key) ?? 0;
  }

  nodeOf(key: string): Server | undefined {
    const { nodeOf, servers } = this.script;
    return nodeOf === undefined ? servers?.[0] : nodeOf(key);
  }

  generationOf(): number {
    return this.generation;
  }

  nodes(): Promise<readonly Server[]> {
    const { servers } = this.script;
    return servers === undefined ? Promise.reject(new Error('no node')) : Promise.resolve(servers);
  }

  onChange(listener: (change: ConnectionChange) => void): void {
    this.listeners.push(listener);
  }

  /** A connection is lost, or has followed. */
  change(connected: boolean): void {
    for (const listener of this.listeners) listener({ node: this.node, connected });
  }

  close(): Promise<void> {
    this.closed = true;
    return Promise.resolve();
  }
}
