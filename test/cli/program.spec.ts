import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from '@jest/globals';
import libsql from 'libsql';
import ts from 'typescript';
import { COMMANDS } from '../../lib/cli/commands.js';
import { COMMAND_HELP, HELP } from '../../lib/cli/help.js';
import { FencingTable } from '../../lib/fencing/index.js';
import { call, PROGRAM, run } from './command-line.js';

describe('The command line', () => {
  const root = fileURLToPath(new URL('../..', import.meta.url));
  const manifest = JSON.parse(readFileSync(`${root}/package.json`, 'utf8')) as {
    version: string;
    bin: Record<string, string>;
  };

  describe('The program', () => {
    it('is what package.json names, and can be started by its first line', () => {
      const { 'nestjs-distributed-lock': path = '' } = manifest.bin;
      expect(fileURLToPath(new URL(path, `file://${root}`))).toBe(PROGRAM);
      expect(readFileSync(PROGRAM, 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/);
    });

    it('tells its version, its help, and what is wrong with a call', async () => {
      const [version, help, nothing] = await Promise.all([run(['--version']), run(['--help']), run([])]);
      expect(version).toMatchObject({ code: 0, stdout: `${manifest.version}\n`, stderr: '' });
      expect(help).toMatchObject({ code: 0, stdout: `${HELP}\n`, stderr: '' });
      expect(nothing).toMatchObject({ code: 64, stdout: '', stderr: expect.stringContaining(HELP) });
    });

    it('ends quietly when its reader has read enough', () => {
      const { status, stdout, stderr } = spawnSync('sh', [
        '-c',
        `"${process.execPath}" "${PROGRAM}" --help | true`,
      ]);
      expect([status, stdout.toString(), stderr.toString()]).toEqual([0, '', '']);
    });

    (existsSync('/dev/full') ? it : it.skip)('fails when its output cannot be written', () => {
      const { status, stderr } = spawnSync('sh', [
        '-c',
        `"${process.execPath}" "${PROGRAM}" --help > /dev/full`,
      ]);
      expect([status, stderr.toString()]).toEqual([
        74,
        'nestjs-distributed-lock: the output cannot be written (ENOSPC)\n',
      ]);
    });

    it('has the same help for help and for --help', async () => {
      for (const args of [['help'], ['help', '--help'], ['--help', '-h']])
        expect(await call(args)).toMatchObject({ code: 0, stdout: `${HELP}\n` });
    });
  });

  describe('The help', () => {
    it('of each command is there', () => {
      expect(Object.keys(COMMAND_HELP)).toEqual([...COMMANDS.keys()]);
    });

    it.each([['', HELP], ...Object.entries(COMMAND_HELP)])('%s fits one screen', (_, text) => {
      const lines = text.split('\n');
      // One line is for the prompt.
      expect(lines.length).toBeLessThan(24);
      expect(lines.filter((line) => line.length > 80)).toEqual([]);
    });

    it.each([...COMMANDS])('of %s names each of its options, and no other', async (name, { options }) => {
      const [, where = ''] = /(Where the locks are[^]*?)\n\n/.exec(HELP) ?? [];
      const named = (text: string) => [...text.matchAll(/--([a-z]+)/g)].map(([, option = '']) => option);
      const text = COMMAND_HELP[name] ?? '';
      const own = named(text.replace(/^Where the locks are[^]*?--help$/m, ''));
      const places = 'url' in options ? named(where) : [];
      expect(new Set([...own, ...places])).toEqual(new Set(Object.keys(options)));
      for (const args of [
        [name, '--help'],
        ['help', name],
        [name, '-h'],
      ])
        expect(await call(args)).toEqual({ code: 0, stdout: `${text}\n`, stderr: '' });
    });
  });
});

describe('fencing-sql', () => {
  interface Migration {
    up(runner: { query(sql: string): Promise<unknown> }): Promise<void>;
    down(runner: { query(sql: string): Promise<unknown> }): Promise<void>;
  }

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
