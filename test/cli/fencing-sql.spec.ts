import { describe, expect, it } from '@jest/globals';
import { runInNewContext } from 'node:vm';
import libsql from 'libsql';
import ts from 'typescript';
import { FencingTable } from '../../lib/fencing/index.js';
import { call } from './command-line.js';

interface Migration {
  up(runner: { query(sql: string): Promise<unknown> }): Promise<void>;
  down(runner: { query(sql: string): Promise<unknown> }): Promise<void>;
}

describe('fencing-sql', () => {
  it('prints a statement that makes the table, without a server', async () => {
    const { code, stdout } = await call(['fencing-sql', '--dialect', 'sqlite', '--table', 'fences']);
    const database = new libsql(':memory:');
    database.exec(stdout);
    database.exec(stdout); // a second time changes nothing
    expect([code, database.prepare('SELECT * FROM fences').all()]).toEqual([0, []]);
    database.close();
  });

  it.each([
    ['postgres', 'DROP TABLE "app"."Fences"'],
    ['mysql', 'DROP TABLE `app`.`Fences`'],
  ] as const)('prints a migration of TypeORM with that statement for %s', async (dialect, drop) => {
    const table = 'app.Fences';
    const { stdout } = await call(['fencing-sql', '--dialect', dialect, '--table', table, '--as', 'typeorm']);
    const { outputText } = ts.transpileModule(stdout, {
      compilerOptions: { module: ts.ModuleKind.CommonJS, target: ts.ScriptTarget.ES2022 },
    });
    const made: { LockFences1700000000000?: new () => Migration } = {};
    runInNewContext(outputText, { exports: made });
    const migration = made.LockFences1700000000000 && new made.LockFences1700000000000();
    const sent: string[] = [];
    const query = (sql: string) => Promise.resolve(sent.push(sql));
    await migration?.up({ query });
    await migration?.down({ query });
    expect(sent).toEqual([new FencingTable({ dialect, table }).createTableSql(), drop]);
  });

  it.each([
    ['postgres', 'app.Fences', ['name  String @id', '@@map("Fences")', '@@schema("app")', 'COLLATE "C"']],
    ['postgres', 'fences', ['token BigInt', '@@map("fences")']],
    ['sqlite', 'fences', ['name  String @id', '@@map("fences")']],
    ['mysql', 'fences', ['Bytes  @id @db.VarBinary(1024)', '@@index([token], map: "by_token")']],
  ])('prints a model of Prisma for %s and the table %s', async (dialect, table, parts) => {
    const { stdout } = await call(['fencing-sql', '--dialect', dialect, '--table', table, '--as', 'prisma']);
    for (const part of parts) expect(stdout).toContain(part);
    expect(stdout.includes('@@schema')).toBe(table.includes('.'));
  });

  it.each([
    [[], '--dialect: must be one of postgres, sqlite, mysql'],
    [['--dialect', 'postgres', '--table', 'a b'], '--table: must be a name of letters'],
    [
      ['--dialect', 'mysql', '--table', 'app.fences', '--as', 'prisma'],
      '--table: a model of Prisma can have a schema on PostgreSQL only',
    ],
    [['--dialect', 'postgres', '--as', 'knex'], '--as must be one of sql, typeorm, prisma'],
  ])('refuses %p', async (args, rule) => {
    const { code, stderr } = await call(['fencing-sql', ...args]);
    expect([code, stderr]).toEqual([64, expect.stringContaining(rule)]);
  });
});
