import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis, type RedisOptions } from 'ioredis';
import { guard } from './guard.js';
import { CURE, RedisServer, serverProgram } from './redis-server.js';
import { inSync, MASTER_ARGS, masterOf, roleOf, startReplica } from './replicas.js';

const NAME = 'locks';

/** ms for which a server may be silent: a busy machine never looks like a dead server… */
const PATIENCE = 60_000;
/** …but the end of a server that a test has killed is soon found out. */
const SOON = 500;

/** A master, two replicas of it, and three sentinels that decide when a test asks who follows a master. */
export class SentinelDeployment {
  readonly connection: RedisOptions;
  private readonly sentinels: ChildProcess[] = [];

  private constructor(
    readonly servers: readonly RedisServer[],
    private readonly directory: string,
    readonly ports: readonly number[],
  ) {
    this.connection = { name: NAME, sentinels: ports.map((port) => ({ host: '127.0.0.1', port })) };
  }

  static async start(): Promise<SentinelDeployment> {
    const master = await RedisServer.start({ args: MASTER_ARGS });
    const replicas = await Promise.all([startReplica(master), startReplica(master)]);
    await inSync(master, replicas);
    const directory = await mkdtemp(join(tmpdir(), 'lock-sentinel-'));
    for (;;) {
      const first = 32_100 + Math.floor(Math.random() * 600);
      const ports = [first, first + 1, first + 2];
      const deployment = new SentinelDeployment([master, ...replicas], directory, ports);
      try {
        await allOrFirstError(ports.map((port) => deployment.launch(port, master.port)));
        await Promise.all(ports.map((port) => whenAcquainted(port)));
        return deployment;
      } catch (error) {
        if (error instanceof Error && error.message.includes('Address already in use')) {
          await deployment.endSentinels();
          continue;
        }
        await deployment.stop();
        throw error;
      }
    }
  }

  /** Whom a majority takes for the master, once it is one. With a former master, that is noticed to be gone. */
  async master(former?: RedisServer): Promise<RedisServer> {
    if (former === undefined) return await this.elected();
    await this.expectSilence(SOON);
    const next = await this.elected(former);
    await this.expectSilence(PATIENCE);
    return next;
  }

  private async elected(former?: RedisServer): Promise<RedisServer> {
    for (;;) {
      const votes = await Promise.all(this.ports.map(masterPort));
      const elected = this.servers.find(({ port }) => votes.filter((vote) => vote === port).length > 1);
      if (elected !== undefined && elected !== former && (await roleOf(elected)) === 'master') return elected;
      await sleep(20);
    }
  }

  /** Makes the sentinels replace the master, without asking whether it lives, and waits until all follow the new one. */
  async failover(former: RedisServer): Promise<RedisServer> {
    const [port = 0] = this.ports;
    // It may not know a good replica yet, or still be at the last one.
    while (!(await ask(port, 'failover', NAME).then(Boolean, () => false))) await sleep(50);
    const next = await this.elected(former);
    const others = this.replicasOf(next).filter((server) => server !== former);
    for (const server of others) while ((await masterOf(server)) !== next.port) await sleep(20);
    return next;
  }

  replicasOf(master: RedisServer): RedisServer[] {
    return this.servers.filter((server) => server !== master);
  }

  async stop(): Promise<void> {
    await this.endSentinels();
    await Promise.all(this.servers.map((server) => server.stop()));
    await rm(this.directory, { recursive: true, force: true });
  }

  private async expectSilence(ms: number): Promise<void> {
    const setting = ['set', NAME, 'down-after-milliseconds', String(ms)];
    await Promise.all(this.ports.map((port) => ask(port, ...setting)));
  }

  private async endSentinels(): Promise<void> {
    for (const sentinel of this.sentinels) {
      if (sentinel.exitCode !== null) continue;
      const exit = once(sentinel, 'exit');
      sentinel.kill('SIGKILL');
      await exit;
    }
  }

  private async launch(port: number, masterPort: number): Promise<void> {
    const program = serverProgram();
    if (program === undefined) throw new Error(CURE);
    const file = join(this.directory, `${String(port)}.conf`);
    await writeFile(
      file,
      `port ${String(port)}
       bind 127.0.0.1
       dir ${this.directory}
       sentinel monitor ${NAME} 127.0.0.1 ${String(masterPort)} 2
       sentinel down-after-milliseconds ${NAME} ${String(PATIENCE)}
       sentinel failover-timeout ${NAME} 3000
       sentinel parallel-syncs ${NAME} 2\n`,
    );
    const child = spawn(program, [file, '--sentinel'], { stdio: ['ignore', 'pipe', 'pipe'] });
    this.sentinels.push(child);
    guard(child);
    await new Promise<void>((resolve, reject) => {
      let log = '';
      child.stdout.on('data', (chunk: Buffer) => {
        log += chunk.toString();
        if (log.includes('+monitor')) resolve();
      });
      child.once('error', reject);
      child.once('exit', () => {
        reject(new Error(`The sentinel did not start:\n${log}`));
      });
    });
  }
}

/** None is still starting when this has an answer. */
async function allOrFirstError(launches: readonly Promise<void>[]): Promise<void> {
  await Promise.allSettled(launches);
  await Promise.all(launches);
}

/** Asks one sentinel. */
async function ask<T>(port: number, ...command: string[]): Promise<T> {
  // A sentinel may have been stopped for a while on a busy machine, and the caller asks again.
  const client = new Redis(port, { enableReadyCheck: false, retryStrategy: null, commandTimeout: 5_000 });
  client.on('error', () => undefined);
  try {
    return (await client.call('SENTINEL', ...command)) as T;
  } finally {
    client.disconnect();
  }
}

/** Undefined if the sentinel does not answer. */
const masterPort = async (port: number): Promise<number | undefined> => {
  const address = await ask<string[]>(port, 'get-master-addr-by-name', NAME).catch(() => undefined);
  return address && Number(address[1]);
};

/** A failover needs sentinels that know each other and the replicas. They take their time unless they are told otherwise. */
async function whenAcquainted(port: number): Promise<void> {
  const periods = ['info-period', 'publish-period', 'ping-period', 'ask-period'].flatMap((name) => [
    name,
    '200',
  ]);
  await ask(port, 'debug', ...periods).catch(() => undefined);
  const known = (what: string) => ask<unknown[]>(port, what, NAME);
  while ((await known('sentinels')).length < 2 || (await known('replicas')).length < 2) await sleep(20);
}
