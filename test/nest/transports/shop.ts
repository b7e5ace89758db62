import { beforeEach } from '@jest/globals';
import {
  type DynamicModule,
  type INestApplication,
  type INestApplicationContext,
  type INestMicroservice,
  Injectable,
  type LoggerService,
  type ModuleMetadata,
} from '@nestjs/common';
import type { MicroserviceOptions } from '@nestjs/microservices';
import { Test, type TestingModule } from '@nestjs/testing';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  DistributedLock,
  InjectLockService,
  LockInterceptor,
  LockModule,
  LockService,
} from '../../../lib/index.js';

/** A way in which a lock fails a request, and what its client is told. */
export interface Failure {
  readonly name: 'busy' | 'down' | 'lost' | 'closed' | 'keyless' | 'invalid';
  readonly code: string;
  readonly status: number;
  readonly message: string;
  /** The status code of gRPC. */
  readonly grpc: number;
  /** Whether the server has failed, which an operator has to know. */
  readonly isLogged: boolean;
}

const failure = (
  name: Failure['name'],
  code: string,
  status: number,
  message: string,
  grpc: number,
  isLogged: boolean,
): Failure => ({ name, code, status, message, grpc, isLogged });

const BUSY = 'The resource is busy, try again later';
const DOWN = 'The service is temporarily unavailable, try again later';
const CLOSED = 'The service is shutting down';
const FAULT = 'Internal server error';
const INVALID = 'The request lacks a value that it needs, or has one that cannot be used';

export const FAILURES: readonly Failure[] = [
  failure('busy', 'LOCK_TIMEOUT', 409, BUSY, 8, false),
  failure('down', 'LOCK_UNAVAILABLE', 503, DOWN, 14, true),
  failure('lost', 'LOCK_LOST', 500, FAULT, 10, true),
  failure('closed', 'LOCK_CLOSED', 503, CLOSED, 14, false),
  failure('keyless', 'LOCK_KEY', 500, FAULT, 13, true),
  failure('invalid', 'LOCK_KEY', 400, INVALID, 3, false),
];

const NAME = 'order:4711';
const PASSWORD = 'swordfish';

/** For a handler: its requests have no such value. */
export const Invalid = () => LockInterceptor('order:$<args[0].missing>', { waitTime: 0 });
/** For a handler: another owner holds this lock. */
export const Busy = () => DistributedLock(NAME, { waitTime: 0 });

/** A service below the handlers. Its methods fail as they are called. */
@Injectable()
export class Shop {
  /** No client may be told any of these. */
  readonly secrets = [NAME, PASSWORD, '127.0.0.1', hostname(), 'args[0]', 'LockService'];

  constructor(
    private readonly locks: LockService,
    @InjectLockService('closed') private readonly closedLocks: LockService,
  ) {}

  async open(): Promise<void> {
    const { owner } = await this.locks.acquire(NAME, { leaseTime: 25_000 });
    this.secrets.push(owner);
    await this.closedLocks.close();
  }

  fail(name: Exclude<Failure['name'], 'invalid'>): Promise<string> {
    return this[name]();
  }

  @Busy()
  async busy() {
    return Promise.resolve('not refused');
  }

  @DistributedLock(NAME, { failFast: true, instance: 'down' })
  async down() {
    return Promise.resolve('not refused');
  }

  @DistributedLock('order:lost', { onLost: 'throw' })
  async lost() {
    await this.locks.forceRelease('order:lost');
    await sleep(5);
    return 'not refused';
  }

  @DistributedLock(NAME, { instance: 'closed' })
  async closed() {
    return Promise.resolve('not refused');
  }

  @DistributedLock('order:$<args[0].id>')
  async keyless(order?: { id: string }) {
    return Promise.resolve(order?.id ?? 'not refused');
  }
}

/** One LockModule for each way to fail. */
const lockModules = (): DynamicModule[] => [
  LockModule.forRoot({ store: 'memory' }),
  LockModule.forRoot({ name: 'down', connection: `redis://:${PASSWORD}@127.0.0.1:1` }),
  LockModule.forRoot({ name: 'closed', store: 'memory' }),
];

/** An application with the shop, and with what a transport adds. */
const shopWith = ({ imports = [], controllers = [], providers = [] }: ModuleMetadata) =>
  Test.createTestingModule({
    imports: [...lockModules(), ...imports],
    controllers,
    providers: [...providers, Shop],
  }).compile();

/** Listens, and takes the lock that all requests meet. */
export async function openShop(
  parts: ModuleMetadata,
  log: ErrorLog,
  make = (module: TestingModule): INestApplication => module.createNestApplication(),
): Promise<INestApplication> {
  const app = make(await shopWith(parts));
  app.useLogger(log);
  await app.listen(0, '127.0.0.1');
  await app.get(Shop).open();
  return app;
}

/** What Nest logs as an error, without the lines of the lock services themselves. */
export class ErrorLog implements LoggerService {
  readonly errors: unknown[] = [];
  /** Of LockModule. */
  readonly warnings: unknown[] = [];

  /** Of all tests of a group, and empty at the begin of each. */
  static ofEach(): ErrorLog {
    const log = new ErrorLog();
    beforeEach(() => {
      log.errors.length = log.warnings.length = 0;
    });
    return log;
  }

  error(...line: unknown[]): void {
    if (!String(line.at(-1)).startsWith('LockService')) this.errors.push(line[0]);
  }

  log(): void {
    // Not looked at.
  }

  warn(...line: unknown[]): void {
    if (line.at(-1) === 'LockModule') this.warnings.push(line[0]);
  }
}

export const secretsOf = (app: INestApplicationContext): string[] => app.get(Shop).secrets;

/** The same of a microservice. */
export async function openMicroservice(
  parts: ModuleMetadata,
  options: MicroserviceOptions,
  log: ErrorLog,
): Promise<INestMicroservice> {
  const app = await startMicroservice(await shopWith(parts), options);
  app.useLogger(log);
  await app.get(Shop).open();
  return app;
}

export async function startMicroservice(
  module: TestingModule,
  options: MicroserviceOptions,
): Promise<INestMicroservice> {
  const app = module.createNestMicroservice<MicroserviceOptions>(options);
  await app.listen();
  return app;
}
