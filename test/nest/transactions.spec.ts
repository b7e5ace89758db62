import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Injectable, Module, type Type } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  ClsPluginTransactional,
  InjectTransactionHost,
  Transactional,
  type TransactionHost,
} from '@nestjs-cls/transactional';
import { TransactionalAdapterTypeOrm } from '@nestjs-cls/transactional-adapter-typeorm';
import { ClsModule } from 'nestjs-cls';
import type { DataSource } from 'typeorm';
import { DistributedLock, LockModule } from '../../lib/index.js';
import { deferred } from '../doubles/deferred.js';
import { TestDatabase } from '../support/database.js';
import { TestEnvironment } from '../support/test-environment.js';

/** ms: a commit that no second reader ends. */
const SLOW_COMMIT = 100;

const environment = new TestEnvironment();
let database: TestDatabase;
let module: TestingModule;
/** What the card was charged for. */
let charges: string[];
let secondRead: ReturnType<typeof deferred>;
let reads: number;

interface Shop {
  pay(orderId: string): Promise<void>;
}
type Host = TransactionHost<TransactionalAdapterTypeOrm>;

/** Reads the order, charges the card and writes that the order is paid. */
async function charge({ tx }: Host, orderId: string): Promise<void> {
  const [order] = await tx.query<{ paid: number }[]>('SELECT paid FROM orders WHERE id = ?', [orderId]);
  if (++reads === 2) secondRead.resolve();
  if (order?.paid === 1) return;
  charges.push(orderId);
  await sleep(50);
  await tx.query('UPDATE orders SET paid = 1 WHERE id = ?', [orderId]);
}

/** The shop on a connection of its own: its lock stands outside of the transaction, or inside. */
function shopOn(connection: string, lock: 'outside' | 'inside'): Type<Shop> {
  @Injectable()
  class LockOutside implements Shop {
    constructor(@InjectTransactionHost(connection) private readonly host: Host) {}

    @DistributedLock('order:$<args[0]>')
    @Transactional(connection)
    async pay(orderId: string): Promise<void> {
      await charge(this.host, orderId);
    }
  }

  @Injectable()
  class LockInside implements Shop {
    constructor(@InjectTransactionHost(connection) private readonly host: Host) {}

    @Transactional(connection)
    @DistributedLock('order:$<args[0]>')
    async pay(orderId: string): Promise<void> {
      await charge(this.host, orderId);
    }
  }
  return lock === 'outside' ? LockOutside : LockInside;
}

/** A commit takes until the second reader has read. */
function slowed(dataSource: DataSource): DataSource {
  dataSource.subscribers.push({
    beforeTransactionCommit: () => Promise.race([secondRead.promise, sleep(SLOW_COMMIT)]),
  });
  return dataSource;
}

@Module({})
class Connections {}

/** The application with two connections, as two of its instances have them. */
async function twoShops(lock: 'outside' | 'inside'): Promise<Shop[]> {
  const connections = ['one', 'two'];
  const shops = connections.map((connection) => shopOn(connection, lock));
  const providers = await Promise.all(
    connections.map(async (provide) => ({ provide, useValue: slowed(await database.connect()) })),
  );
  const plugins = connections.map(
    (connectionName) =>
      new ClsPluginTransactional({
        connectionName,
        imports: [{ module: Connections, providers, exports: connections }],
        adapter: new TransactionalAdapterTypeOrm({ dataSourceToken: connectionName }),
      }),
  );
  const locks = LockModule.forRoot({ connection: (await environment.server()).url });
  module = await Test.createTestingModule({
    imports: [locks, ClsModule.forRoot(), ClsModule.registerPlugins(plugins)],
    providers: shops,
  }).compile();
  await module.init();
  return shops.map((shop) => module.get(shop));
}

beforeEach(async () => {
  charges = [];
  reads = 0;
  secondRead = deferred();
  database = await TestDatabase.create();
  const first = await database.connect();
  await first.query('CREATE TABLE orders (id TEXT PRIMARY KEY, paid INTEGER)');
  await first.query("INSERT INTO orders VALUES ('7', 0)");
});

afterEach(async () => {
  await module.close();
  await database.remove();
  await environment.end();
});

describe('two instances that pay one order at the same time', () => {
  it('charge once with the lock outside of the transaction', async () => {
    const shops = await twoShops('outside');
    await Promise.all(shops.map((shop) => shop.pay('7')));
    expect(charges).toEqual(['7']);
  });

  it('charge twice with the lock inside: the second holder reads before the first one has committed', async () => {
    const shops = await twoShops('inside');
    const outcomes = await Promise.allSettled(shops.map((shop) => shop.pay('7')));
    expect(charges).toEqual(['7', '7']);
    // SQLite refuses the second commit; the card has been charged by then.
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  });
});
