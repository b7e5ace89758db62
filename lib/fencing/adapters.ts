import { LockConfigError } from '../lock.errors.js';
import type { Execute } from './fencing-table.js';

/** The statements begin so where the database has upserts that name what conflicts: PostgreSQL and SQLite. */
const isUpsert = (sql: string): boolean => sql.includes('ON CONFLICT');

const withQuestionMarks = (sql: string): string => sql.replaceAll(/\$\d+/g, '?');

function withDollars(sql: string): string {
  let n = 0;
  return sql.replaceAll('?', () => `$${String(++n)}`);
}

/** The number of changed rows, in the words of the drivers that a library passes through. */
function changedRows(result: unknown): number {
  const [first] = Array.isArray(result) ? (result as unknown[]) : [result];
  const { rowCount, affectedRows, rowsAffected, changes, count } = (first ?? {}) as Record<string, unknown>;
  const told = [rowCount, affectedRows, rowsAffected, changes, count].find((one) => typeof one === 'number');
  if (typeof told === 'number') return told;
  return Array.isArray(result) ? result.length : NaN;
}

/** @throws LockConfigError for what is known to be outside of a transaction, as the fence would guard nothing there */
function assertInTransaction(adapter: string, isInside: boolean, cure: string): void {
  if (!isInside) throw new LockConfigError(adapter, `needs a transaction: ${cure}`);
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
  assertInTransaction('typeorm', queryRunner?.isTransactionActive === true, 'pass the manager that it gives');
  return async (sql, parameters) => (await queryRunner?.query(sql, parameters, true))?.affected ?? NaN;
};

/** For the client that Prisma gives an interactive transaction: `prisma.$transaction((tx) => …)`. */
export const prisma = (tx: {
  $executeRawUnsafe(sql: string, ...parameters: unknown[]): Promise<number>;
}): Execute => {
  assertInTransaction('prisma', !('$connect' in tx), 'pass the client that $transaction gives');
  return (sql, parameters) => tx.$executeRawUnsafe(sql, ...parameters);
};

/** For what Drizzle gives a transaction: `db.transaction((tx) => …)`. */
export const drizzle = (tx: object): Execute => {
  const { execute, run } = tx as Record<'execute' | 'run', ((sql: string) => unknown) | undefined>;
  assertInTransaction('drizzle', 'rollback' in tx, 'pass what db.transaction gives');
  const send = execute ?? run;
  // It takes parameters only in objects of its own classes. So they are written into the SQL, as hexadecimal digits.
  return async (sql, parameters) => {
    let n = 0;
    const literal = (): string => hexText(sql, String(parameters[n++]));
    return changedRows(await send?.call(tx, sql.replaceAll(/\$\d+|\?/g, literal)));
  };
};

function hexText(sql: string, text: string): string {
  const hex = Buffer.from(text).toString('hex');
  if (!isUpsert(sql)) return `X'${hex}'`;
  return sql.includes('$') ? `convert_from(decode('${hex}', 'hex'), 'UTF8')` : `CAST(X'${hex}' AS TEXT)`;
}

/** For the transaction of Knex: `knex.transaction((trx) => …)`. */
export const knex = (trx: {
  readonly isTransaction?: boolean | undefined;
  raw(sql: string, parameters: never): PromiseLike<unknown>;
}): Execute => {
  assertInTransaction('knex', trx.isTransaction === true, 'pass what knex.transaction gives');
  // With SQLite it gives the rows of a statement, and no count.
  return async (sql, parameters) =>
    changedRows(
      await trx.raw(withQuestionMarks(sql) + (isUpsert(sql) ? ' RETURNING name' : ''), parameters as never),
    );
};

/** For the entity manager that MikroORM gives a transaction: `em.transactional((em) => …)`. */
export const mikroOrm = (em: {
  isInTransaction(): boolean;
  execute(sql: string, parameters: unknown[], method: 'run'): Promise<unknown>;
}): Execute => {
  assertInTransaction(
    'mikroOrm',
    em.isInTransaction(),
    'pass the entity manager that em.transactional gives',
  );
  return async (sql, parameters) => changedRows(await em.execute(withQuestionMarks(sql), parameters, 'run'));
};

/** For the transaction of Sequelize: `sequelize.transaction((tx) => …)`. */
export const sequelize = (tx: object): Execute => {
  const { sequelize: database } = tx as {
    sequelize?: { query(sql: string, options: object): Promise<unknown> };
  };
  assertInTransaction('sequelize', database !== undefined, 'pass what sequelize.transaction gives');
  // By this type it gives the number of rows, whatever the statement is.
  return async (sql, parameters) =>
    Number(
      await database?.query(withDollars(sql), { bind: parameters, transaction: tx, type: 'BULKUPDATE' }),
    );
};

/** For a client of node-postgres, between BEGIN and COMMIT. A pool is refused. */
export const pg = (client: {
  query(sql: string, parameters: unknown[]): Promise<{ rowCount: number | null }>;
  getTransactionStatus?(): string | null;
}): Execute => {
  const isIdle = !('totalCount' in client) && client.getTransactionStatus?.() === 'I';
  assertInTransaction(
    'pg',
    !('totalCount' in client) && !isIdle,
    'pass the client that has sent BEGIN, not the pool',
  );
  return async (sql, parameters) => (await client.query(sql, parameters)).rowCount ?? NaN;
};

/** For a connection of mysql2/promise, after `beginTransaction`. A pool is refused. */
export const mysql2 = (connection: {
  query(sql: string, parameters: unknown[]): Promise<readonly unknown[]>;
}): Execute => {
  const isConnection = !('getConnection' in connection);
  assertInTransaction('mysql2', isConnection, 'pass the connection that has begun it, not the pool');
  return async (sql, parameters) => changedRows(await connection.query(sql, parameters));
};
