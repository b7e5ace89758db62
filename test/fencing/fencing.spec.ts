import 'reflect-metadata';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Injectable, Logger, Module, type Type } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  ClsPluginTransactional,
  InjectTransactionHost,
  Transactional,
  type TransactionHost,
} from '@nestjs-cls/transactional';
import { TransactionalAdapterTypeOrm } from '@nestjs-cls/transactional-adapter-typeorm';
import { ClsModule } from 'nestjs-cls';
import { DataSource } from 'typeorm';
import { Fenced, FencingTable, typeorm } from '../../lib/fencing/index.js';
import {
  DistributedLock,
  type Lease,
  type LockEvent,
  LockModule,
  LockService,
  type Term,
} from '../../lib/index.js';
import { passThroughLocks } from '../../lib/testing/index.js';
import { deferred } from '../doubles/deferred.js';
import { TestDatabase } from '../support/database.js';
import { TestEnvironment } from '../support/test-environment.js';

const fences = new FencingTable({ dialect: 'sqlite' });
const environment = new TestEnvironment();
let database: TestDatabase;
let source: DataSource;
/** Two services with locks of their own: each holder believes that it has the lock, as a paused one does. */
let past: LockService;
let present: LockService;

beforeEach(async () => {
  database = await TestDatabase.create();
  source = await database.connect();
  await source.query(fences.createTableSql());
  await source.query('CREATE TABLE stock (amount INTEGER NOT NULL)');
  await source.query('INSERT INTO stock (amount) VALUES (0)');
  [past, present] = [environment.service({ store: 'memory' }), environment.service({ store: 'memory' })];
});

afterEach(async () => {
  await environment.end();
  await database.remove();
});

const set = (amount: number, lease?: Lease | Term) =>
  source.transaction(async (manager) => {
    await manager.query('UPDATE stock SET amount = -1'); // has to be rolled back
    await fences.guard(typeorm(manager), lease);
    await manager.query('UPDATE stock SET amount = ?', [amount]);
  });
const amount = async (): Promise<number | undefined> =>
  (await source.query<{ amount: number }[]>('SELECT amount FROM stock'))[0]?.amount;

describe('FencingTable', () => {
  it('lets holders commit in the order of their leases, and rolls a former one back', async () => {
    const [older, newer] = [await past.acquire('stock'), await present.acquire('stock')];
    await set(1, older);
    await set(2, older);
    await set(3, newer);
    await expect(set(9, older)).rejects.toMatchObject({
      code: 'LOCK_LOST',
      reason: 'fenced',
      key: 'stock',
      owner: older.owner,
    });
    expect(await amount()).toBe(3);
  });

  it('refuses a multi-lock of which another holder has got one name', async () => {
    const older = await past.acquire(['a', 'b', 'c']);
    await set(1, older);
    await set(2, await present.acquire('b'));
    await expect(set(9, older)).rejects.toMatchObject({ reason: 'fenced' });
    expect(await amount()).toBe(2);
  });

  it('refuses a former leader by the number of its term', async () => {
    const terms: Term[] = [];
    for (const service of [past, present]) {
      await service.getElection('stock').run(async (term) => {
        terms.push({ name: term.name, number: term.number, signal: term.signal });
        await set(terms.length, term);
      });
    }
    const [first] = terms;
    if (first === undefined) throw new Error('nobody was elected');
    await expect(set(9, { ...first, signal: new AbortController().signal })).rejects.toMatchObject({
      reason: 'fenced',
    });
    await expect(set(9, first)).rejects.toThrow('The term has ended');
    expect(await amount()).toBe(2);
  });

  it('takes the lease of the lock, of once and of an election around the call', async () => {
    await present.using('stock', () => set(1));
    await present.once('stock', { period: 1_000 }, () => set(2));
    await present.getElection('stock').run(() => set(3));
    expect(await amount()).toBe(3);
  });

  it('takes a lease that has travelled', async () => {
    const ticket = await (await present.acquire('stock')).handOver();
    await set(1, await present.resume(ticket));
    expect(await amount()).toBe(1);
  });

  it('keeps names apart, whatever stands in them', async () => {
    const names = ["a'b", 'A', 'a', '$1', '?'];
    for (const name of [...names].reverse()) await past.using(name, () => set(1));
    for (const name of names) await present.using(name, () => set(2));
    expect(await source.query('SELECT name FROM lock_fences')).toHaveLength(names.length);
  });

  it('refuses a call without a lock, and a lease that has ended', async () => {
    await expect(set(9)).rejects.toMatchObject({
      code: 'LOCK_CONFIG',
      message: expect.stringContaining('without a lock'),
    });
    const lease = await present.acquire('stock');
    await lease.release();
    await expect(set(9, lease)).rejects.toMatchObject({ reason: 'released' });
    expect(await amount()).toBe(0);
  });

  it('refuses work that a lock has left behind, also within another lock', async () => {
    const ended = deferred();
    await present.using('order', async () => {
      let left: Promise<void> | undefined;
      await present.using('stock', () => {
        left = ended.promise.then(() => set(9));
      });
      ended.resolve();
      await expect(left).rejects.toMatchObject({
        code: 'LOCK_CONFIG',
        message: expect.stringContaining('after the callback of its lock'),
      });
      await set(1);
    });
    expect(await amount()).toBe(1);
  });

  it('does nothing without a lease where decorators pass through', async () => {
    const restore = passThroughLocks();
    try {
      await set(1);
    } finally {
      restore();
    }
    expect(await amount()).toBe(1);
  });

  it.each([undefined, null, '1', NaN, -1, 0.5])('refuses an execute that gives %p', async (given) => {
    const guard = present.using('stock', () => fences.guard(() => Promise.resolve(given as number)));
    await expect(guard).rejects.toMatchObject({ code: 'LOCK_CONFIG', option: 'execute' });
  });

  it('refuses leases of readers and of a semaphore, whose holders would refuse each other', async () => {
    const { read, write } = present.getReadWriteLock('shared');
    const several = present.getMultiLock([present.getLock('alone'), present.getSemaphore('permits', 2)]);
    for (const lock of [read, several]) {
      const lease = await lock.acquire();
      await expect(set(9, lease)).rejects.toMatchObject({ code: 'LOCK_CONFIG', option: 'lease' });
      await lease.release();
    }
    await set(1, await write.acquire());
    await set(2, await present.getSemaphore('one', 1).acquire());
    expect(await amount()).toBe(2);
  });

  it.each([undefined, NaN, -1, 0.5, 2 ** 53, '7'])('refuses %p as a token', async (number) => {
    const term = { name: 'stock', number: number as number, signal: new AbortController().signal };
    await expect(set(9, term)).rejects.toMatchObject({ code: 'LOCK_CONFIG', option: 'lease' });
    expect(await amount()).toBe(0);
  });

  it('refuses the manager of no transaction', () => {
    expect(() => typeorm(source.manager)).toThrow('needs a transaction');
  });

  it.each([
    [{ dialect: 'oracle' }, 'dialect'],
    [{ dialect: 'sqlite', table: 'a; DROP TABLE b' }, 'table'],
    [{ dialect: 'sqlite', table: '' }, 'table'],
  ])('refuses the options %p', (options, option) => {
    const make = () => new FencingTable(options as ConstructorParameters<typeof FencingTable>[0]);
    expect(make).toThrow(expect.objectContaining({ code: 'LOCK_CONFIG', option }));
  });

  it('forgets locks that have not been guarded since then, and only these', async () => {
    await past.using('old', () => set(1));
    const [old] = await source.query<{ token: number }[]>('SELECT token FROM lock_fences');
    const between = new Date((old?.token ?? NaN) / 1_000 + 2);
    while (Date.now() <= between.getTime()) await new Promise(setImmediate);
    await present.using('new', () => set(2));
    await source.query(fences.pruneSql(between));
    expect(await source.query('SELECT name FROM lock_fences')).toEqual([{ name: 'new' }]);
    expect(() => fences.pruneSql(new Date(NaN))).toThrow(expect.objectContaining({ option: 'olderThan' }));
  });
});

interface Shop {
  pay(amount: number): Promise<void>;
}
type Host = TransactionHost<TransactionalAdapterTypeOrm>;

async function start(
  Subject: Type<Shop>,
): Promise<{ shop: Shop; module: TestingModule; warnings: LockEvent[] }> {
  @Module({ providers: [{ provide: DataSource, useValue: source }], exports: [DataSource] })
  class DatabaseModule {}
  const adapter = new TransactionalAdapterTypeOrm({ dataSourceToken: DataSource });
  const module = await Test.createTestingModule({
    imports: [
      LockModule.forRoot({ store: 'memory' }),
      ClsModule.forRoot(),
      ClsModule.registerPlugins([new ClsPluginTransactional({ imports: [DatabaseModule], adapter })]),
    ],
    providers: [Subject],
  }).compile();
  const warnings: LockEvent[] = [];
  module.get(LockService).events$.subscribe((event) => {
    if (event.type === 'warning') warnings.push(event);
  });
  await module.init();
  environment.add(() => module.close());
  return { shop: module.get(Subject), module, warnings };
}

describe('@Fenced', () => {
  const execute = (shop: object) => typeorm((shop as { host: Host }).host.tx);

  beforeEach(() => {
    jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
  });

  afterEach(() => {
    jest.restoreAllMocks();
  });

  it('guards the transaction before the method runs', async () => {
    const ran: number[] = [];

    @Injectable()
    class Guarded implements Shop {
      constructor(@InjectTransactionHost() readonly host: Host) {}

      @DistributedLock('stock')
      @Transactional()
      @Fenced(fences, execute)
      async pay(value: number): Promise<void> {
        ran.push(value);
        await this.host.tx.query('UPDATE stock SET amount = ?', [value]);
      }
    }

    const { shop, module, warnings } = await start(Guarded);
    await shop.pay(1);
    // Another holder, with a later token: the service of the application has forgotten nothing of its own.
    await module.get(LockService).forceRelease('stock');
    await source.query('UPDATE lock_fences SET token = token + 1000000000000');
    await expect(shop.pay(9)).rejects.toMatchObject({ reason: 'fenced' });
    expect([await amount(), ran, warnings]).toEqual([1, [1], []]);
  });

  it('warns at boot where it stands above the transaction', async () => {
    @Injectable()
    class Outside implements Shop {
      constructor(@InjectTransactionHost() readonly host: Host) {}

      @DistributedLock('stock')
      @Fenced(fences, execute)
      @Transactional()
      async pay(): Promise<void> {
        await Promise.resolve();
      }
    }

    const { shop, warnings } = await start(Outside);
    expect(warnings).toMatchObject([{ code: 'fence-outside-transaction' }]);
    await expect(shop.pay(1)).rejects.toMatchObject({ option: 'typeorm' });
  });

  it('is refused above the lock', () => {
    const declare = () => {
      class Above implements Shop {
        @Fenced(fences, execute)
        @DistributedLock('stock')
        async pay(): Promise<void> {
          await Promise.resolve();
        }
      }
      return Above;
    };
    expect(declare).toThrow('stands above @DistributedLock');
  });
});
