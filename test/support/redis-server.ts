import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import type { Redis } from 'ioredis';
import { assertionClient } from './assertion-client.js';
import { guard } from './guard.js';
import { Monitor } from './monitor.js';
import type { TestRedis } from './redis.js';

/** Where this machine has a server program, if it has one. */
export function serverProgram(): string | undefined {
  return ['redis-server', 'valkey-server']
    .flatMap((name) => (process.env.PATH ?? '').split(delimiter).map((directory) => join(directory, name)))
    .find((file) => existsSync(file));
}

/** What the server program says of itself, such as `Valkey server v=9.1.2 …`. Empty where there is none. */
export function serverVersion(): string {
  const program = serverProgram();
  return program === undefined ? '' : spawnSync(program, ['--version'], { encoding: 'utf8' }).stdout;
}

/** For messages about a missing program. */
export const CURE =
  'Install one: apt-get install redis-server, apk add redis, dnf install redis, or brew install redis.';

export interface RedisServerOptions {
  /** Further arguments of the server program. */
  args?: string[];
  /** Added to the environment of the server program. */
  env?: Record<string, string>;
  /** @default a free one */
  port?: number;
}

/** A Redis process of its own, empty and without persistence, that a test may freeze, kill and restart. */
export class RedisServer implements TestRedis {
  readonly via = 'process';
  port = NaN;
  private directory: string | undefined;
  private child: ChildProcess | undefined;
  private assertions: Redis | undefined;
  /** The local ports of our own connections, so that a monitor can leave them out. */
  private readonly ownPorts = new Set<number>();

  private args: string[] = [];

  /** Without a process until {@link open}. */
  constructor(private readonly options: RedisServerOptions = {}) {}

  static async start(options?: RedisServerOptions): Promise<RedisServer> {
    const server = new RedisServer(options);
    await server.open();
    return server;
  }

  get url(): string {
    return `redis://127.0.0.1:${String(this.port)}`;
  }

  /** On a free port, also after {@link stop}. */
  async open(): Promise<void> {
    const { args = [], port } = this.options;
    this.args = [...args];
    this.assertions = undefined;
    this.directory = await mkdtemp(join(tmpdir(), 'lock-redis-'));
    for (;;) {
      this.port = port ?? randomPort();
      try {
        await this.launch();
        return;
      } catch (error) {
        const taken = error instanceof Error && error.message.includes('Address already in use');
        if (port === undefined && taken) continue;
        await this.stop();
        throw error;
      }
    }
  }

  get pid(): number | undefined {
    return this.child?.pid;
  }

  /** For assertions: always the same connection, which comes back after a restart. */
  client(): Redis {
    if (this.assertions === undefined) {
      const client = assertionClient(this.url);
      client.on('connect', () => this.ownPorts.add(client.stream.localPort ?? 0));
      this.assertions = client;
    }
    return this.assertions;
  }

  /** A restart keeps it; a server that does not run has it when it starts. */
  async configure(setting: string, value: number | string): Promise<void> {
    this.args.push(`--${setting}`, String(value));
    if (this.pid !== undefined) await this.client().config('SET', setting, value);
  }

  /** Stops the process where it is: connections stay open, and nothing is answered. */
  freeze(): void {
    this.child?.kill('SIGSTOP');
  }

  thaw(): void {
    this.child?.kill('SIGCONT');
  }

  /** As a crash does: nothing is saved, and the system closes the connections. */
  async kill(): Promise<void> {
    const { child } = this;
    if (child === undefined) return;
    const exit = once(child, 'exit');
    child.kill('SIGKILL');
    await exit;
  }

  /** A new, empty process on the same port. */
  async restart(): Promise<void> {
    await this.kill();
    await this.launch();
  }

  async stop(): Promise<void> {
    // Kept, so that what is asked too late fails, and connects to no server that is gone.
    this.assertions?.disconnect();
    await this.kill();
    if (this.directory !== undefined) await rm(this.directory, { recursive: true, force: true });
    this.directory = undefined;
  }

  /** How often each command has run, by its lower-case name, those inside of scripts included. */
  async commandCalls(): Promise<Record<string, number>> {
    const stats = await this.client().info('commandstats');
    const calls = [...stats.matchAll(/^cmdstat_(\S+?):calls=(\d+)/gm)].map(
      ([, name = '', count]) => [name.toLowerCase(), Number(count)] as const,
    );
    return Object.fromEntries(calls.filter(([name]) => name !== 'config|resetstat'));
  }

  async resetCommandCalls(): Promise<void> {
    await this.client().config('RESETSTAT');
  }

  /** Collects what clients send from now on, without the assertions and without what scripts do inside. */
  async monitor(): Promise<Monitor> {
    return await Monitor.start(this.port, this.client(), this.ownPorts);
  }

  private async launch(): Promise<void> {
    const program = serverProgram();
    if (program === undefined)
      throw new Error(`Neither redis-server nor valkey-server is on the PATH. ${CURE}`);
    const { directory = '' } = this;
    const fixed = ['--bind', '127.0.0.1', '--port', String(this.port), '--save', '', '--appendonly', 'no'];
    const child = spawn(program, [...fixed, ...this.args], {
      cwd: directory,
      env: { ...process.env, ...this.options.env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.child = child;
    child.once('exit', () => (this.child = undefined));
    await new Promise<void>((resolve, reject) => {
      let log = '';
      const read = (chunk: Buffer) => {
        log += chunk.toString();
        // Its own word, and not a PING, which the owner of a port that was taken would answer as well.
        if (/ready to accept connections/i.test(log)) resolve();
      };
      child.stdout.on('data', read);
      child.stderr.on('data', read);
      child.once('error', reject);
      child.once('close', () => {
        reject(new Error(`${program} did not start:\n${log}`));
      });
    });
    guard(child, directory);
  }
}

/** Below the range that outgoing connections are given, where a client that reconnects could meet itself. */
const randomPort = () => 20_000 + Math.floor(Math.random() * 12_000);
