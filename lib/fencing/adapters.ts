import { LockConfigError } from '../api/errors.js';
import type { Execute } from './fencing-table.js';

/** A bit of `SERVER_STATUS_flags_enum` in the protocol of MySQL. */
const IN_TRANSACTION = 1;

/** The statements begin so where the database has upserts that name what conflicts: PostgreSQL and SQLite. */
const isUpsert = (sql: string): boolean => sql.includes('ON CONFLICT');

const withQuestionMarks = (sql: string): string => sql.replaceAll(/\$\d+/g, '?');

function withDollars(sql: string): string {
  let n = 0;
  return sql.replaceAll('?', () => `$${String(++n)}`);
}

/**
 * The number of changed rows, in the words of the drivers that a library passes through. MySQL says with each answer whether the
 * connection is in a transaction.
 * @throws LockConfigError when it is in none
 */
function changedRows(result: unknown): number {
  // postgres.js gives an array of the rows that has their number as a property.
  const [first] = Array.isArray(result) && !('count' in result) ? (result as unknown[]) : [result];
  const { serverStatus, ...counts } = (first ?? {}) as Record<string, unknown>;
  if (typeof serverStatus === 'number' && (serverStatus & IN_TRANSACTION) === 0)
    throw new LockConfigError('execute', 'needs a transaction: the server says that there is none');
  const { rowCount, affectedRows, rowsAffected, changes, count } = counts;
  const told = [rowCount, affectedRows, rowsAffected, changes, count].find((one) => typeof one === 'number');
  if (typeof told === 'number') return told;
  return Array.isArray(result) ? result.length : NaN;
}

/**
 * An execute for what a library gives a transaction. It is looked at now, and again at each statement, because it may be kept.
 * @throws LockConfigError if there is certainly no transaction, as the fence would guard nothing then
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

/** For the manager that TypeORM gives a transaction: `dataSource.transaction((manager) => …)`. */
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

/** For the client that Prisma gives an interactive transaction: `prisma.$transaction((tx) => …)`. */
export const prisma = (tx: {
  $executeRawUnsafe(sql: string, ...parameters: unknown[]): Promise<number>;
}): Execute =>
  inTransaction(
    'prisma',
    () => !('$connect' in tx),
    'pass the client that $transaction gives',
    (sql, parameters) => tx.$executeRawUnsafe(sql, ...parameters),
  );

/** For what Drizzle gives a transaction: `db.transaction((tx) => …)`. */
export const drizzle = (tx: object): Execute => {
  const { execute, run } = tx as Record<'execute' | 'run', ((sql: string) => unknown) | undefined>;
  const send = execute ?? run;
  // It takes parameters only in objects of its own classes. So they are written into the SQL.
  const literals: Execute = async (sql, parameters) => {
    let n = 0;
    const literal = (): string => literalOf(sql, String(parameters[n++]));
    return changedRows(await send?.call(tx, sql.replaceAll(/\$\d+|\?/g, literal)));
  };
  return inTransaction('drizzle', () => 'rollback' in tx, 'pass what db.transaction gives', literals);
};

/** Digits stand in quotes as they are: MySQL would take `X'31'` for the number 49. All parameters are digits there. */
function literalOf(sql: string, text: string): string {
  if (/^[0-9a-f]+$/.test(text)) return `'${text}'`;
  const hex = Buffer.from(text).toString('hex');
  return sql.includes('$') ? `convert_from(decode('${hex}', 'hex'), 'UTF8')` : `CAST(X'${hex}' AS TEXT)`;
}

/** For the transaction of Knex: `knex.transaction((trx) => …)`. */
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
      // With SQLite it gives the rows of a statement, and no count.
      const returning = isUpsert(sql) ? ' RETURNING name' : '';
      return changedRows(await trx.raw(withQuestionMarks(sql) + returning, parameters as never));
    },
  );

/** For the entity manager that MikroORM gives a transaction: `em.transactional((em) => …)`. */
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

/** For the transaction of Sequelize: `sequelize.transaction((tx) => …)`. */
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
      // By this type it gives the number of rows, whatever the statement is.
      Number(
        await database?.query(withDollars(sql), { bind: parameters, transaction: tx, type: 'BULKUPDATE' }),
      ),
  );
};

/** For a client of node-postgres, between BEGIN and COMMIT. A pool is refused. */
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

/** For a connection of mysql2/promise, after `beginTransaction`. A pool is refused. */
export const mysql2 = (connection: {
  query(sql: string, parameters: unknown[]): Promise<readonly unknown[]>;
}): Execute =>
  inTransaction(
    'mysql2',
    () => !('getConnection' in connection),
    'pass the connection that has begun it, not the pool',
    async (sql, parameters) => changedRows(await connection.query(sql, parameters)),
  );
