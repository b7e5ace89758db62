import { afterAll, afterEach } from '@jest/globals';
import { LockService, type LockModuleOptions } from '../../lib/index.js';
import { RedisServer, type RedisServerOptions } from './redis-server.js';
import { Worker, type WorkerOptions } from './worker.js';

/** Only ends what hangs, ms: a machine may have any speed. */
const PATIENCE = 60_000;

interface Listening {
  on: (event: 'error', listener: () => void) => unknown;
  disconnect: () => void;
}

/** Whoever takes part in a spec: servers, services of this process, other processes. All go with `end()`. */
export class TestEnvironment {
  private readonly players: (() => unknown)[] = [];
  private readonly servers: RedisServer[] = [];

  /** Ends after each test. */
  static ofEach<Environment extends TestEnvironment>(this: new () => Environment): Environment {
    const environment = new this();
    afterEach(() => environment.end());
    return environment;
  }

  /** Ends after the last test of its file, or of its group. */
  static ofAll<Environment extends TestEnvironment>(this: new () => Environment): Environment {
    const environment = new this();
    afterAll(() => environment.end());
    return environment;
  }

  /** Anybody else. */
  add(leave: () => unknown): void {
    this.players.push(leave);
  }

  async server(options?: RedisServerOptions): Promise<RedisServer> {
    const server = await RedisServer.start(options);
    this.servers.push(server);
    return server;
  }

  /** It waits for longer than any machine takes. */
  service(options: LockModuleOptions): LockService {
    const service = new LockService({ waitTime: PATIENCE, ...options });
    this.add(() => service.onApplicationShutdown());
    return service;
  }

  /** A client of an application, made by either version of ioredis. */
  client<Client extends { disconnect: () => void }>(client: Client): Client {
    this.add(() => {
      client.disconnect();
    });
    return client;
  }

  /** One whose application hears its errors, so that the library need not log them. */
  clientWithListener<Client extends Listening>(client: Client): Client {
    client.on('error', () => undefined);
    return this.client(client);
  }

  async worker(options: WorkerOptions): Promise<Worker> {
    const worker = await Worker.start(options);
    this.add(() => worker.stop());
    return worker;
  }

  async workers(count: number, options: WorkerOptions): Promise<Worker[]> {
    return await Promise.all(Array.from({ length: count }, () => this.worker(options)));
  }

  /** However far the spec has come. The servers go last, when all locks have been given back. */
  async end(): Promise<void> {
    const exits = await Promise.allSettled(this.players.splice(0).map(async (leave) => leave()));
    await Promise.all(this.servers.splice(0).map((server) => server.stop()));
    for (const exit of exits) if (exit.status === 'rejected') throw exit.reason;
  }
}
