import { FencingTable } from '../../fencing/fencing-table.js';
import { dialectOf, type FencingDialect } from '../../fencing/dialect.js';
import { isLockConfigError } from '../../api/error-guards.js';
import { usageFailure } from '../command-failure.js';
import { EXIT } from '../exit-code.js';
import type { Given } from '../given.js';
import type { Screen } from '../output/screen.js';

type Form = (table: string, sql: string, dialect: FencingDialect) => string;

const FORMS: Readonly<Record<string, Form>> = {
  sql: (_, sql) => `${sql};`,
  // The SQL has the quotes of names in it, and none of texts.
  typeorm: (table, sql, dialect) => `import type { MigrationInterface, QueryRunner } from 'typeorm';

export class LockFences1700000000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('${sql}');
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP TABLE ${dialectOf(dialect)?.quoted(table) ?? table}');
  }
}`,
  prisma: prismaModel,
};

const COLLATION = [
  'Prisma does not know collations: in the migration that it makes (--create-only), write COLLATE "C" after TEXT.',
  'Otherwise an upgrade of the language library of the server can break the index of the names.',
]
  .map((line) => `// ${line}\n`)
  .join('');

/** Prisma compares the database with its models, and would drop a table that it does not know. */
function prismaModel(table: string, _: string, dialect: FencingDialect): string {
  const [name = '', schema] = table.split('.').reverse();
  if (schema !== undefined && dialect !== 'postgres')
    throw usageFailure('--table: a model of Prisma can have a schema on PostgreSQL only');
  const [before, fields] = {
    postgres: [COLLATION, ['name  String @id', 'token BigInt', '']],
    sqlite: ['', ['name  String @id', 'token BigInt', '']],
    mysql: [
      '',
      [
        'name   Bytes  @id @db.VarBinary(1024)',
        'token  BigInt',
        'guards BigInt @default(0)',
        '',
        '@@index([token], map: "by_token")',
      ],
    ],
  }[dialect] as [string, string[]];
  const lines = [...fields, `@@map("${name}")`, ...(schema === undefined ? [] : [`@@schema("${schema}")`])];
  return `${before}model LockFence {\n${lines.map((line) => (line === '' ? line : `  ${line}`)).join('\n')}\n}`;
}

export function run(given: Given, screen: Screen): Promise<number> {
  const [dialect, table = 'lock_fences', as = 'sql'] = ['dialect', 'table', 'as'].map((name) =>
    given.value(name),
  );
  const form = Object.hasOwn(FORMS, as) ? FORMS[as] : undefined;
  if (form === undefined) throw usageFailure(`--as must be one of ${Object.keys(FORMS).join(', ')}`);
  try {
    const sql = new FencingTable({ dialect: dialect as FencingDialect, table }).createTableSql();
    screen.print(form(table, sql, dialect as FencingDialect));
  } catch (error) {
    throw isLockConfigError(error) ? usageFailure(`--${error.message.replace(/ \(found: .*$/s, '')}`) : error;
  }
  return Promise.resolve(EXIT.done);
}
