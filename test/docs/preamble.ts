import { expect } from '@jest/globals';
import { Injectable, Module } from '@nestjs/common';
import { Redis } from 'ioredis';
import { DistributedLock, LockModule, LockService } from 'nestjs-distributed-lock';
import { DataSource } from 'typeorm';
import { FencingTable } from 'nestjs-distributed-lock/fencing';
import { missing, startPostgres } from '../fencing/database-server.js';
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
export { FencingTable, typeorm } from 'nestjs-distributed-lock/fencing';
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

/** Of the application, with the tables that the pages speak of. Without PostgreSQL it is never used: see `needsPostgres`. */
export const database = missing.postgres === undefined ? await startPostgres() : undefined;
const place = { host: '127.0.0.1', port: database?.port ?? 0, username: 'postgres' };
export const dataSource = new DataSource({ type: 'postgres', ...place });
if (database !== undefined) await makeTables();

async function makeTables(): Promise<void> {
  await dataSource.initialize();
  await dataSource.query('CREATE TABLE orders (id TEXT PRIMARY KEY, paid BOOLEAN NOT NULL)');
  await dataSource.query("INSERT INTO orders VALUES ('7', false)");
  await dataSource.query(new FencingTable({ dialect: 'postgres' }).createTableSql());
}

export interface Order {
  id: number;
  items: { sku: string }[];
}
export const id = 7;
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
