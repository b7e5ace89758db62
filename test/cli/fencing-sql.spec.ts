import { describe, expect, it } from '@jest/globals';
import libsql from 'libsql';
import { FencingTable } from '../../lib/fencing/index.js';
import { call } from './command-line.js';

describe('fencing-sql', () => {
  it('prints a statement that makes the table, without a server', async () => {
    const { code, stdout } = await call(['fencing-sql', '--dialect', 'sqlite', '--table', 'fences']);
    const database = new libsql(':memory:');
    database.exec(stdout);
    database.exec(stdout); // a second time changes nothing
    expect([code, database.prepare('SELECT * FROM fences').all()]).toEqual([0, []]);
    database.close();
  });

  it('prints a migration of TypeORM with that statement, and a model of Prisma', async () => {
    const sql = new FencingTable({ dialect: 'postgres' }).createTableSql();
    const typeorm = await call(['fencing-sql', '--dialect', 'postgres', '--as', 'typeorm']);
    expect(typeorm.stdout).toContain(`await queryRunner.query(\`${sql}\`);`);
    const prisma = await call(['fencing-sql', '--dialect', 'mysql', '--as', 'prisma']);
    expect(prisma.stdout).toMatch(
      /model LockFence \{[^}]*Bytes {2}@id[^}]*BigInt[^}]*@@map\("lock_fences"\)/,
    );
  });

  it.each([
    [[], '--dialect: must be one of postgres, sqlite, mysql'],
    [['--dialect', 'postgres', '--table', 'a b'], '--table: must be a name of letters'],
    [['--dialect', 'postgres', '--as', 'knex'], '--as must be one of sql, typeorm, prisma'],
  ])('refuses %p', async (args, rule) => {
    const { code, stderr } = await call(['fencing-sql', ...args]);
    expect([code, stderr]).toEqual([64, expect.stringContaining(rule)]);
  });
});
