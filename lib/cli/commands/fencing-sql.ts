import { FencingTable } from '../../fencing/fencing-table.js';
import type { FencingDialect } from '../../fencing/dialect.js';
import { isLockConfigError } from '../../api/errors.js';
import { usageFailure } from '../command-failure.js';
import { EXIT } from '../exit-code.js';
import type { Given } from '../given.js';
import type { Screen } from '../output/screen.js';

const FORMS: Readonly<Record<string, (table: string, sql: string, isMysql: boolean) => string>> = {
  sql: (_, sql) => `${sql};`,
  typeorm: (table, sql) => `import type { MigrationInterface, QueryRunner } from 'typeorm';

export class LockFences1700000000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(\`${sql}\`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP TABLE ${table}');
  }
}`,
  // Prisma compares the database with its models, and would drop a table that it does not know.
  prisma: (table, _, isMysql) => `model LockFence {
  name   ${isMysql ? 'Bytes  @id @db.VarBinary(1024)' : 'String @id'}
  token  BigInt
${isMysql ? '  guards BigInt @default(0)\n' : ''}
  @@map("${table}")
}`,
};

export function run(given: Given, screen: Screen): Promise<number> {
  const [dialect, table = 'lock_fences', as = 'sql'] = ['dialect', 'table', 'as'].map((name) =>
    given.value(name),
  );
  const form = Object.hasOwn(FORMS, as) ? FORMS[as] : undefined;
  if (form === undefined) throw usageFailure(`--as must be one of ${Object.keys(FORMS).join(', ')}`);
  try {
    const sql = new FencingTable({ dialect: dialect as FencingDialect, table }).createTableSql();
    screen.print(form(table, sql, dialect === 'mysql'));
  } catch (error) {
    throw isLockConfigError(error) ? usageFailure(`--${error.message.replace(/ \(found: .*$/s, '')}`) : error;
  }
  return Promise.resolve(EXIT.done);
}
