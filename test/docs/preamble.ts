import { expect } from '@jest/globals';
import { Injectable, Module } from '@nestjs/common';
import { Redis } from 'ioredis';
import { DistributedLock, LockModule, LockService } from 'nestjs-distributed-lock';
import { DataSource } from 'typeorm';
import { TestDatabase } from '../support/database.js';
import { PageServers } from './servers.js';

/** What a reader of the pages is taken to know or to have: a block imports the rest itself. */
export { expect };
export { setTimeout as sleep } from 'node:timers/promises';
export {
  Body,
  Controller,
  Get,
  Injectable,
  Module,
  Param,
  Post,
  UseFilters,
  UseInterceptors,
} from '@nestjs/common';
export { NestFactory } from '@nestjs/core';
export { MessagePattern, Payload } from '@nestjs/microservices';
export { MessageBody, SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
export { HealthCheck, HealthCheckService, TerminusModule } from '@nestjs/terminus';
export { Cron, CronExpression } from '@nestjs/schedule';
export { interval, Observable, take } from 'rxjs';
export {
  assertLocked,
  currentLease,
  DistributedLock,
  InjectLockService,
  isLockTimeoutError,
  isLockUnavailableError,
  LockExceptionFilter,
  LockInterceptor,
  LockModule,
  LockService,
  LockTimeoutError,
} from 'nestjs-distributed-lock';

export const servers = await PageServers.open();

/** Injected: `constructor(private readonly locks: LockService) {}`. */
export const locks = new LockService({ connection: servers.url });

/** A client of the application's own. */
export const redis = new Redis(servers.url, { commandTimeout: 2_000 });

export const database = await TestDatabase.create();
/** Of the application, with the tables that the pages speak of. */
export const dataSource = await database.connect();
await dataSource.query('CREATE TABLE orders (id TEXT PRIMARY KEY, paid INTEGER NOT NULL)');
await dataSource.query("INSERT INTO orders VALUES ('7', 0)");

export interface Order {
  id: number;
  items: { sku: string }[];
}
export const id = 7;
interface Repository {
  load(id: number, options?: { signal: AbortSignal }): Promise<Order>;
  save(order: Order, options?: { onlyIfTokenAbove: number }): Promise<void>;
}
export const repository: Repository = {
  load: async (id) => ({ id, items: [{ sku: 'a' }] }),
  save: async () => undefined,
};
export const render = async (): Promise<string> => '<html></html>';
export const update = async (): Promise<void> => undefined;
export const step = async (name: string): Promise<string> => name;
export const stopWork = (): void => undefined;

/** The first example of the README. */
@Injectable()
export class Orders {
  @DistributedLock('order:$<args[0]>')
  async pay(orderId: string): Promise<string> {
    return orderId;
  }
}

/** Those of @nestjs/config. */
export class ConfigService {
  getOrThrow(name: 'REDIS_URL'): string {
    return { REDIS_URL: servers.url }[name];
  }
}
@Module({ providers: [ConfigService], exports: [ConfigService] })
export class ConfigModule {}

@Module({ providers: [{ provide: DataSource, useValue: dataSource }], exports: [DataSource] })
export class DatabaseModule {}

/** An application that has it, with Redis. */
@Module({ imports: [LockModule.forRoot({ connection: servers.url })], providers: [Orders] })
export class AppModule {}
