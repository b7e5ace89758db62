import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type DatabaseServer, missing, startMariaDb, startPostgres } from '../database-server.js';
import { installLibraries } from '../libraries/install.mjs';

const LIBRARIES = fileURLToPath(new URL('../libraries', import.meta.url));
const lacks = missing.postgres ?? missing.mariadb;
const describeHere = lacks === undefined ? describe : describe.skip;
const because = lacks === undefined ? '' : ` (left out: ${lacks})`;

let postgres: DatabaseServer;
let mariadb: DatabaseServer;

beforeAll(async () => {
  if (lacks !== undefined) return;
  installLibraries();
  [postgres, mariadb] = await Promise.all([startPostgres(), startMariaDb()]);
}, 300_000);

afterAll(async () => {
  if (lacks === undefined) await Promise.all([postgres.stop(), mariadb.stop()]);
});

describeHere(`the adapters with their libraries${because}`, () => {
  it('let the present holder commit, refuse a former one, and refuse what is no transaction', async () => {
    const args = ['adapters.mjs', String(postgres.port), String(mariadb.port)];
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: LIBRARIES });
    const results = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as object);
    const committed = { first: 'committed', second: 'committed', again: 'committed' };
    const kept = { ...committed, late: 'fenced', afterwards: 'refused', amount: 3 };
    const on = (dialect: string, ...adapters: string[]) =>
      adapters.map((adapter) => ({ adapter, dialect, ...kept, tokens: true, refused: 'LOCK_CONFIG' }));
    const expected = [
      ...on('postgres', 'typeorm', 'prisma', 'drizzle', 'knex', 'mikroOrm', 'sequelize', 'pg'),
      ...on('mysql', 'typeorm', 'drizzle', 'knex', 'sequelize', 'mysql2'),
    ];
    // What Drizzle gives a transaction does not tell when that has ended, and neither does PostgreSQL.
    const untold = expected.find(({ adapter, dialect }) => adapter === 'drizzle' && dialect === 'postgres');
    Object.assign(untold ?? {}, { afterwards: 'guarded' });
    expect(results).toHaveLength(expected.length);
    expect(results).toEqual(expect.arrayContaining(expected));
  });
});
