import { execFile } from 'node:child_process';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { readPage } from '../../docs/markdown.js';
import { RedisServer } from '../../support/redis-server.js';
import { FencingTable } from '../../../lib/fencing/index.js';
import { type DatabaseServer, missing, startPostgres } from '../database-server.js';
import { installLibraries } from '../libraries/install.mjs';

const root = fileURLToPath(new URL('../../..', import.meta.url));
/** Beside the libraries, so that the programs find them. */
const directory = fileURLToPath(new URL('../libraries/dist/', import.meta.url));
const describeHere = missing.postgres === undefined ? describe : describe.skip;
const because = missing.postgres === undefined ? '' : ` (left out: ${missing.postgres})`;

const programs = readPage(root, 'docs/guide/recipes/databases.md').blocks.filter(
  ({ language }) => language === 'js',
);

describeHere(`the recipes for databases, on PostgreSQL${because}`, () => {
  let postgres: DatabaseServer;
  let redis: RedisServer;
  let client: pg.Client;

  beforeAll(async () => {
    installLibraries();
    [postgres, redis] = await Promise.all([startPostgres(), RedisServer.start()]);
    client = new pg.Client({ host: '127.0.0.1', port: postgres.port, user: 'postgres' });
    await client.connect();
    await client.query('CREATE TABLE orders (id TEXT PRIMARY KEY, paid BOOLEAN NOT NULL)');
    await rm(directory, { recursive: true, force: true });
    await mkdir(directory);
  }, 300_000);

  afterAll(async () => {
    await client.end();
    await Promise.all([postgres.stop(), redis.stop()]);
  });

  it('are four', () => {
    expect(programs).toHaveLength(4);
  });

  /** Two calls at once. */
  const programOf = (code: string) => `
    import { LockService } from '../../../../dist/index.js';
    const locks = new LockService({ connection: process.env.REDIS_URL });
    ${code.replace(/'nestjs-distributed-lock\/fencing'/, "'../../../../dist/fencing/index.js'")}
    const answers = await Promise.all([pay('7'), pay('7')]);
    process.stdout.write(JSON.stringify(answers), () => process.exit());
  `;

  it.each(programs.map(({ title, code }, n) => ({ title, code, n })))(
    '$title pays once under a fence',
    async ({ code, n }) => {
      await redis.client().flushall(); // a program that has failed leaves its lock behind
      await client.query('DROP TABLE IF EXISTS lock_fences');
      await client.query(new FencingTable({ dialect: 'postgres' }).createTableSql());
      await client.query("TRUNCATE orders; INSERT INTO orders VALUES ('7', false)");
      const file = `${directory}${String(n)}.mjs`;
      await writeFile(file, programOf(code));
      const DATABASE_URL = `postgresql://postgres@127.0.0.1:${String(postgres.port)}/postgres`;
      const env = { ...process.env, DATABASE_URL, REDIS_URL: redis.url };
      const { stdout } = await promisify(execFile)(process.execPath, [file], { env });
      expect(JSON.parse(stdout.slice(stdout.lastIndexOf('[')))).toEqual(['paid', 'was paid before']);
      expect((await client.query('SELECT * FROM orders')).rows).toEqual([{ id: '7', paid: true }]);
      expect((await client.query('SELECT name FROM lock_fences')).rows).toEqual([{ name: 'order:7' }]);
      // A greater token has been seen: the next call is refused, and changes nothing.
      await client.query('UPDATE orders SET paid = false; UPDATE lock_fences SET token = 9007199254740991');
      await expect(promisify(execFile)(process.execPath, [file], { env })).rejects.toThrow(
        'the database has seen a later holder',
      );
      expect((await client.query('SELECT paid FROM orders')).rows).toEqual([{ paid: false }]);
    },
    60_000,
  );
});
