// Usage: node adapters.mjs <port of PostgreSQL> <port of MariaDB>
//
// Runs each adapter with its real library against each database that it is for, and prints a line of JSON for each.
import 'reflect-metadata';
import { EntitySchema, MikroORM } from '@mikro-orm/postgresql';
import { PrismaPg } from '@prisma/adapter-pg';
import { PrismaClient } from '@prisma/client';
import { drizzle as drizzleOnMysql } from 'drizzle-orm/mysql2';
import { drizzle as drizzleOnPostgres } from 'drizzle-orm/node-postgres';
import { drizzle as drizzleOnPostgresJs } from 'drizzle-orm/postgres-js';
import createKnex from 'knex';
import mysql from 'mysql2/promise';
import pg from 'pg';
import postgresJs from 'postgres';
import { Sequelize } from 'sequelize';
import { DataSource } from 'typeorm';
import { LockService } from '../../../dist/index.js';
import * as fencing from '../../../dist/fencing/index.js';

const [postgresPort, mysqlPort] = process.argv.slice(2).map(Number);
const url = `postgresql://postgres@127.0.0.1:${postgresPort}/postgres`;
const maria = { host: '127.0.0.1', port: mysqlPort, user: 'root', database: 'fences' };

const pool = new pg.Pool({ connectionString: url });
await (await mysql.createConnection({ ...maria, database: undefined })).query('CREATE DATABASE fences');
const mysqlPool = mysql.createPool(maria);
const admins = {
  postgres: async (sql) => (await pool.query(sql)).rows,
  mysql: async (sql) => (await mysqlPool.query(sql))[0],
};

const typeormOn = async (options) => {
  const source = await new DataSource(options).initialize();
  return {
    inside: (work) =>
      source.transaction((manager) => work(fencing.typeorm(manager), (sql) => manager.query(sql))),
    outside: () => fencing.typeorm(source.manager),
  };
};
const knexOn = (client, connection) => {
  const database = createKnex({ client, connection });
  return {
    inside: (work) => database.transaction((trx) => work(fencing.knex(trx), (sql) => trx.raw(sql))),
    outside: () => fencing.knex(database),
  };
};
const drizzleOn = (database) => ({
  inside: (work) => database.transaction((tx) => work(fencing.drizzle(tx), (sql) => tx.execute(sql))),
  outside: () => fencing.drizzle(database),
});
const sequelizeOn = (...args) => {
  const database = new Sequelize(...args);
  return {
    inside: (work) =>
      database.transaction((transaction) =>
        work(fencing.sequelize(transaction), (sql) => database.query(sql, { transaction })),
      ),
    outside: () => fencing.sequelize({}),
  };
};
/** Begins, commits and rolls back by hand, as the drivers are used. */
const byHand = (connect, release, adapt) => async (work) => {
  const client = await connect();
  try {
    await client.query('START TRANSACTION');
    const result = await work(adapt(client), (sql) => client.query(sql));
    await client.query('COMMIT');
    return result;
  } catch (error) {
    await client.query('ROLLBACK');
    throw error;
  } finally {
    release(client);
  }
};
const release = (client) => client.release();
const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: url }) });
const entity = new EntitySchema({ name: 'Nothing', properties: { id: { type: 'number', primary: true } } });
const orm = await MikroORM.init({ clientUrl: url, entities: [entity], debug: false });

const cases = [
  ['typeorm', 'postgres', await typeormOn({ type: 'postgres', url })],
  ['typeorm', 'mysql', await typeormOn({ type: 'mysql', ...maria, username: 'root' })],
  [
    'prisma',
    'postgres',
    {
      inside: (work) =>
        prisma.$transaction((tx) => work(fencing.prisma(tx), (sql) => tx.$executeRawUnsafe(sql))),
      outside: () => fencing.prisma(prisma),
    },
  ],
  ['drizzle', 'postgres', drizzleOn(drizzleOnPostgres(pool))],
  ['drizzle over postgres.js', 'postgres', drizzleOn(drizzleOnPostgresJs(postgresJs(url)))],
  ['drizzle', 'mysql', drizzleOn(drizzleOnMysql(mysqlPool))],
  ['knex', 'postgres', knexOn('pg', url)],
  ['knex', 'mysql', knexOn('mysql2', maria)],
  [
    'mikroOrm',
    'postgres',
    {
      inside: (work) =>
        orm.em.fork().transactional((em) => work(fencing.mikroOrm(em), (sql) => em.execute(sql, [], 'run'))),
      outside: () => fencing.mikroOrm(orm.em.fork()),
    },
  ],
  ['sequelize', 'postgres', sequelizeOn(url, { logging: false })],
  ['sequelize', 'mysql', sequelizeOn('fences', 'root', '', { ...maria, dialect: 'mysql', logging: false })],
  [
    'pg',
    'postgres',
    { inside: byHand(() => pool.connect(), release, fencing.pg), outside: () => fencing.pg(pool) },
  ],
  [
    'mysql2',
    'mysql',
    {
      inside: byHand(() => mysqlPool.getConnection(), release, fencing.mysql2),
      outside: () => fencing.mysql2(mysqlPool),
    },
  ],
];

// Two services with locks of their own: each holder believes that it has the lock, as a paused one does.
const [past, present] = [new LockService({ store: 'memory' }), new LockService({ store: 'memory' })];
/** Quotes and signs that a statement could take for its own, digits, and names that are alike in a collation. */
const NAMES = ["a'b\\", 'tokens $1 ? é 🔒', 'deadbeef', '31', 'A', 'a', 'a ', 'á', 'a\u0301'];
const HEX_NAME = { postgres: "encode(convert_to(name, 'UTF8'), 'hex')", mysql: 'LOWER(HEX(name))' };
const codeOf = (error) => error?.reason ?? error?.code ?? String(error);

for (const [adapter, dialect, { inside, outside }] of cases) {
  const admin = admins[dialect];
  const fences = new fencing.FencingTable({ dialect });
  await admin(`DROP TABLE IF EXISTS lock_fences`);
  await admin(fences.createTableSql());
  await admin(`DROP TABLE IF EXISTS stock`);
  await admin(`CREATE TABLE stock (amount INTEGER NOT NULL)`);
  await admin(`INSERT INTO stock (amount) VALUES (0)`);
  let kept;
  const write = (lease, amount) =>
    inside(async (execute, send) => {
      kept = execute;
      await fences.guard(execute, lease);
      await send(`UPDATE stock SET amount = ${amount}`);
    }).then(() => 'committed', codeOf);
  const [older, newer] = [await past.acquire(NAMES), await present.acquire(NAMES)];
  const [first, second, again, late] = [
    await write(older, 1),
    await write(newer, 2),
    await write(newer, 3),
    await write(older, 9),
  ];
  const rows = await admin(`SELECT ${HEX_NAME[dialect]} AS name, token FROM lock_fences`);
  const stored = rows.map(({ name, token }) => [Buffer.from(name, 'hex').toString(), Number(token)]);
  const [{ amount }] = await admin('SELECT amount FROM stock');
  const afterwards = await fences.guard(kept, newer).then(
    () => 'guarded',
    () => 'refused',
  );
  let refused = 'nothing';
  try {
    outside();
  } catch (error) {
    refused = error.code;
  }
  console.log(
    JSON.stringify({
      adapter,
      dialect,
      first,
      second,
      again,
      late,
      afterwards,
      amount,
      isStored: String(stored.sort()) === String([...newer.fencingTokens].sort()),
      refused,
    }),
  );
  await Promise.all([older.release(), newer.release()]);
}
process.exit();
