import { execFile } from 'node:child_process';
import { rm, writeFile } from 'node:fs/promises';
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
      adapters.map((adapter) => ({ adapter, dialect, ...kept, isStored: true, refused: 'LOCK_CONFIG' }));
    const expected = [
      ...on(
        'postgres',
        'typeorm',
        'prisma',
        'drizzle',
        'drizzle over postgres.js',
        'knex',
        'mikroOrm',
        'sequelize',
        'pg',
      ),
      ...on('mysql', 'typeorm', 'drizzle', 'knex', 'sequelize', 'mysql2'),
    ];
    // What Drizzle gives a transaction does not tell when that has ended, and neither does PostgreSQL.
    for (const one of expected)
      if (one.adapter.startsWith('drizzle') && one.dialect === 'postgres') one.afterwards = 'guarded';
    expect(results).toHaveLength(expected.length);
    expect(results).toEqual(expect.arrayContaining(expected));
  });

  it('@Fenced guards in the transaction of typeorm-transactional, and warns of the order in which it could not', async () => {
    const args = ['transactional.mjs', String(postgres.port)];
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: LIBRARIES });
    expect(JSON.parse(stdout)).toEqual({
      first: 'committed',
      late: 'fenced',
      ran: [1],
      amount: 1,
      above: 'LOCK_CONFIG',
      warnings: [[], [expect.stringContaining('@Fenced')]],
    });
  });

  it.each([
    ['postgres', 'postgresql', 'app.Fences'],
    ['mysql', 'mysql', 'Fences'],
    ['sqlite', 'sqlite', 'lock_fences'],
  ])(
    'Prisma takes the model that fencing-sql prints for %s',
    async (dialect, provider, table) => {
      const program = fileURLToPath(new URL('../../../dist/cli/main.js', import.meta.url));
      const args = [program, 'fencing-sql', '--dialect', dialect, '--table', table, '--as', 'prisma'];
      const { stdout: model } = await promisify(execFile)(process.execPath, args);
      const schemas = table.includes('.') ? 'schemas = ["app"]' : '';
      const file = `${LIBRARIES}/dist-${dialect}.prisma`;
      await writeFile(file, `datasource db {\nprovider = "${provider}"\n${schemas}\n}\n${model}`);
      try {
        const env = { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath }; // it needs none
        const validate = ['prisma', 'validate', '--schema', file];
        const { stdout } = await promisify(execFile)('npx', validate, { cwd: LIBRARIES, env });
        expect(stdout).toContain('is valid');
      } finally {
        await rm(file);
      }
    },
    60_000,
  );
});
