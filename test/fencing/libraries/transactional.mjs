// Usage: node transactional.mjs <port of PostgreSQL>
//
// @Fenced below and above the @Transactional of typeorm-transactional. Prints what has become of the calls as JSON.
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DataSource } from 'typeorm';
import {
  addTransactionalDataSource,
  initializeTransactionalContext,
  StorageDriver,
  Transactional,
} from 'typeorm-transactional';
import { DistributedLock, LockModule } from '../../../dist/index.js';
import { Fenced, FencingTable, typeorm } from '../../../dist/fencing/index.js';

initializeTransactionalContext({ storageDriver: StorageDriver.ASYNC_LOCAL_STORAGE });
const source = new DataSource({
  type: 'postgres',
  url: `postgresql://postgres@127.0.0.1:${process.argv[2]}/postgres`,
});
addTransactionalDataSource(source);
await source.initialize();
const fences = new FencingTable({ dialect: 'postgres', table: 'transactional_fences' });
await source.query(fences.createTableSql());
await source.query('CREATE TABLE transactional_stock (amount int)');
await source.query('INSERT INTO transactional_stock VALUES (0)');

/** As TypeScript does it: the lowest decorator first. */
function decorate(subject, ...decorators) {
  const descriptor = Object.getOwnPropertyDescriptor(subject.prototype, 'pay');
  for (const decorator of decorators.toReversed()) decorator(subject.prototype, 'pay', descriptor);
  Object.defineProperty(subject.prototype, 'pay', descriptor);
}
const fenced = Fenced(fences, () => typeorm(source.manager));
const ran = [];

class Inside {
  async pay(amount) {
    ran.push(amount);
    await source.manager.query('UPDATE transactional_stock SET amount = $1', [amount]);
  }
}
decorate(Inside, DistributedLock('stock'), Transactional(), fenced);

class Outside {
  async pay() {}
}
decorate(Outside, DistributedLock('other'), fenced, Transactional());

/** The warnings of a boot with this class. */
async function boot(subject) {
  const warnings = [];
  class AppModule {}
  Module({ imports: [LockModule.forRoot({ store: 'memory' })], providers: [subject] })(AppModule);
  const logger = { log() {}, error() {}, warn: (text) => warnings.push(text) };
  const app = await NestFactory.createApplicationContext(AppModule, { logger });
  return { app, subject: app.get(subject), warnings };
}
const endOf = (call) =>
  call.then(
    () => 'committed',
    ({ code, reason }) => reason ?? code,
  );

const inside = await boot(Inside);
const first = await endOf(inside.subject.pay(1));
await source.query('UPDATE transactional_fences SET token = token + 1000000000000');
const late = await endOf(inside.subject.pay(9));
const [{ amount }] = await source.query('SELECT amount FROM transactional_stock');
const outside = await boot(Outside);
const above = await endOf(outside.subject.pay());
console.log(
  JSON.stringify({
    first,
    late,
    ran,
    amount,
    above,
    warnings: [inside.warnings, outside.warnings],
  }),
);
await inside.app.close();
await outside.app.close();
await source.destroy();
