import { LockConfigError } from '../api/errors.js';
import type { Execute } from './fencing-table.js';

/** A bit of `SERVER_STATUS_flags_enum` in the MySQL protocol. */
const IN_TRANSACTION = 1;

/** Whether the dialect is PostgreSQL or SQLite, whose upserts name the conflicting column. */
const isUpsert = (sql: string): boolean => sql.includes('ON CONFLICT');

const withQuestionMarks = (sql: string): string => sql.replaceAll(/\$\d+/g, '?');

function withDollars(sql: string): string {
  let n = 0;
  return sql.replaceAll('?', () => `$${String(++n)}`);
}

/**
 * The number of changed rows in a driver's result, under the property names of the drivers that libraries pass through.
 * Each answer of MySQL says whether the connection is in a transaction.
 * @throws LockConfigError if it is in none
 */
function changedRows(result: unknown): number {
  // postgres.js returns an array of the rows, with their number as a property.
  const [first] = Array.isArray(result) && !('count' in result) ? (result as unknown[]) : [result];
  // Not by a copy: the number of postgres.js is not enumerable.
  const answer = (first ?? {}) as Record<string, unknown>;
  const { serverStatus, rowCount, affectedRows, rowsAffected, changes, count } = answer;
  if (typeof serverStatus === 'number' && (serverStatus & IN_TRANSACTION) === 0)
    throw new LockConfigError('execute', 'needs a transaction: the server says that there is none');
  const told = [rowCount, affectedRows, rowsAffected, changes, count].find((one) => typeof one === 'number');
  if (typeof told === 'number') return told;
  return Array.isArray(result) ? result.length : NaN;
}

/**
 * An execute for the object that a library gives a transaction. Checks the transaction now and before each statement,
 * because the caller may keep the object.
 * @throws LockConfigError if there is certainly no transaction, because then the fence would guard nothing
 */
function inTransaction(adapter: string, isInside: () => boolean, cure: string, execute: Execute): Execute {
  const check = (): void => {
    if (!isInside()) throw new LockConfigError(adapter, `needs a transaction: ${cure}`);
  };
  check();
  return async (sql, parameters) => {
    check();
    return await execute(sql, parameters);
  };
}

/** For the manager of a TypeORM transaction: `dataSource.transaction((manager) => …)`. */
export const typeorm = (manager: {
  readonly queryRunner?:
    | {
        readonly isTransactionActive: boolean;
        query(
          sql: string,
          parameters: unknown[],
          structured: true,
        ): Promise<{ affected?: number | undefined }>;
      }
    | undefined;
}): Execute => {
  const { queryRunner } = manager;
  const isInside = () => queryRunner?.isTransactionActive === true;
  return inTransaction(
    'typeorm',
    isInside,
    'pass the manager that it gives',
    async (sql, parameters) => (await queryRunner?.query(sql, parameters, true))?.affected ?? NaN,
  );
};

/** For the client of an interactive Prisma transaction: `prisma.$transaction((tx) => …)`. */
export const prisma = (tx: {
  $executeRawUnsafe(sql: string, ...parameters: unknown[]): Promise<number>;
}): Execute =>
  inTransaction(
    'prisma',
    () => !('$connect' in tx),
    'pass the client that $transaction gives',
    (sql, parameters) => tx.$executeRawUnsafe(sql, ...parameters),
  );

/** For the object of a Drizzle transaction: `db.transaction((tx) => …)`. */
export const drizzle = (tx: object): Execute => {
  const { execute, run } = tx as Record<'execute' | 'run', ((sql: string) => unknown) | undefined>;
  const send = execute ?? run;
  // Drizzle accepts parameters only in objects of its own classes, so they are written into the SQL.
  const literals: Execute = async (sql, parameters) => {
    let n = 0;
    const literal = (): string => literalOf(sql, String(parameters[n++]));
    return changedRows(await send?.call(tx, sql.replaceAll(/\$\d+|\?/g, literal)));
  };
  return inTransaction('drizzle', () => 'rollback' in tx, 'pass what db.transaction gives', literals);
};

/**
 * Digits are quoted as they are, because MySQL would read `X'31'` as the number 49. For MySQL, all parameters are
 * digits.
 */
function literalOf(sql: string, text: string): string {
  if (/^[0-9a-f]+$/.test(text)) return `'${text}'`;
  const hex = Buffer.from(text).toString('hex');
  return sql.includes('$') ? `convert_from(decode('${hex}', 'hex'), 'UTF8')` : `CAST(X'${hex}' AS TEXT)`;
}

/** For a Knex transaction: `knex.transaction((trx) => …)`. */
export const knex = (trx: {
  readonly isTransaction?: boolean | undefined;
  isCompleted?(): boolean;
  raw(sql: string, parameters: never): PromiseLike<unknown>;
}): Execute =>
  inTransaction(
    'knex',
    () => trx.isTransaction === true && trx.isCompleted?.() !== true,
    'pass what knex.transaction gives',
    async (sql, parameters) => {
      // For SQLite, Knex returns the rows of a statement and no count.
      const returning = isUpsert(sql) ? ' RETURNING name' : '';
      return changedRows(await trx.raw(withQuestionMarks(sql) + returning, parameters as never));
    },
  );

/** For the entity manager of a MikroORM transaction: `em.transactional((em) => …)`. */
export const mikroOrm = (em: {
  isInTransaction(): boolean;
  execute(sql: string, parameters: unknown[], method: 'run'): Promise<unknown>;
}): Execute =>
  inTransaction(
    'mikroOrm',
    () => em.isInTransaction(),
    'pass the entity manager that em.transactional gives',
    async (sql, parameters) => changedRows(await em.execute(withQuestionMarks(sql), parameters, 'run')),
  );

/** For a Sequelize transaction: `sequelize.transaction((tx) => …)`. */
export const sequelize = (tx: object): Execute => {
  const { sequelize: database } = tx as {
    sequelize?: { query(sql: string, options: object): Promise<unknown> };
  };
  const isInside = () => database !== undefined && (tx as { finished?: string }).finished === undefined;
  return inTransaction(
    'sequelize',
    isInside,
    'pass what sequelize.transaction gives',
    async (sql, parameters) =>
      // With this type, Sequelize returns the number of rows for every statement.
      Number(
        await database?.query(withDollars(sql), { bind: parameters, transaction: tx, type: 'BULKUPDATE' }),
      ),
  );
};

/** For a client of node-postgres, between BEGIN and COMMIT. Refuses a pool. */
export const pg = (client: {
  query(sql: string, parameters: unknown[]): Promise<{ rowCount: number | null }>;
  getTransactionStatus?(): string | null;
}): Execute =>
  inTransaction(
    'pg',
    () => !('totalCount' in client) && client.getTransactionStatus?.() !== 'I',
    'pass the client that has sent BEGIN, not the pool',
    async (sql, parameters) => (await client.query(sql, parameters)).rowCount ?? NaN,
  );

/** For a connection of mysql2/promise, after `beginTransaction`. Refuses a pool. */
export const mysql2 = (connection: {
  query(sql: string, parameters: unknown[]): Promise<readonly unknown[]>;
}): Execute =>
  inTransaction(
    'mysql2',
    () => !('getConnection' in connection),
    'pass the connection that has begun it, not the pool',
    async (sql, parameters) => changedRows(await connection.query(sql, parameters)),
  );
