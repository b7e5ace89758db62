/** A database that {@link FencingTable} knows. `mysql` includes MariaDB. */
export type FencingDialect = 'postgres' | 'mysql' | 'sqlite';

export interface Statement {
  readonly sql: string;
  readonly parameters: unknown[];
}

/** A name and its fencing token. */
export type Fence = readonly [name: string, token: number];

/** The SQL of one dialect, for one table, whose name is in quotes. */
export interface Dialect {
  /** @param table with its schema and a dot before it, if it has one */
  quoted(table: string): string;
  create(table: string): string;
  /** Deletes the rows with smaller tokens. It must not wait for transactions of distant rows. */
  prune(table: string, token: string): string;
  /** The statements run in the order of the properties. */
  guard(table: string, fences: readonly Fence[]): Guard;
}

export interface Guard {
  /** Locks the rows. Its number of changed rows depends on settings of the connection. */
  readonly store?: Statement;
  /** Together they change one row for each fence; otherwise the table has seen a greater token. */
  readonly check: readonly Statement[];
}

/**
 * The token travels as text, because some drivers send a number as a 32-bit integer or a float. The inner cast makes
 * PostgreSQL treat the parameter as text.
 */
const upsert: Dialect['guard'] = (table, fences) => {
  const rows = fences.map((_, n) => {
    const [name, token] = [`$${String(2 * n + 1)}`, `$${String(2 * n + 2)}`];
    return `(CAST(${name} AS TEXT), CAST(CAST(${token} AS TEXT) AS BIGINT))`;
  });
  const sql =
    `INSERT INTO ${table} AS seen (name, token) VALUES ${rows.join(', ')} ` +
    'ON CONFLICT (name) DO UPDATE SET token = excluded.token WHERE seen.token <= excluded.token';
  return { check: [{ sql, parameters: fences.flatMap(([name, token]) => [name, String(token)]) }] };
};

/**
 * For MySQL, as hexadecimal digits. The charset of the connection may change other characters. Drivers that write
 * parameters into the SQL do not know `NO_BACKSLASH_ESCAPES`, which decides whether a quote ends a text.
 */
const inDigits = ([name, token]: Fence): unknown[] => [Buffer.from(name).toString('hex'), String(token)];

/** For PostgreSQL and SQLite. A `DELETE` without an index reads all rows, and locks only those that it deletes. */
const standard: Pick<Dialect, 'quoted' | 'prune'> = {
  quoted: (table) => table.replaceAll(/\w+/g, '"$&"'),
  prune: (table, token) => `DELETE FROM ${table} WHERE token < ${token}`,
};

const DIALECTS: Readonly<Record<FencingDialect, Dialect>> = {
  postgres: {
    ...standard,
    // The collation "C" compares names byte by byte. An index of another collation may break when its library is
    // upgraded.
    create: (table) =>
      `CREATE TABLE IF NOT EXISTS ${table} (name TEXT COLLATE "C" PRIMARY KEY, token BIGINT NOT NULL)`,
    guard: upsert,
  },
  sqlite: {
    ...standard,
    create: (table) => `CREATE TABLE IF NOT EXISTS ${table} (name TEXT PRIMARY KEY, token INTEGER NOT NULL)`,
    guard: (table, fences) => {
      const { check } = upsert(table, fences);
      return {
        check: check.map(({ sql, parameters }) => ({ sql: sql.replaceAll(/\$\d+/g, '?'), parameters })),
      };
    },
  },
  // VARBINARY compares names byte by byte, which a text column of MySQL does not. Rows must be locked, hence InnoDB.
  mysql: {
    quoted: (table) => table.replaceAll(/\w+/g, '`$&`'),
    create: (table) =>
      `CREATE TABLE IF NOT EXISTS ${table} (name VARBINARY(1024) PRIMARY KEY, token BIGINT NOT NULL, ` +
      'guards BIGINT NOT NULL DEFAULT 0, INDEX by_token (token)) ENGINE = InnoDB',
    // InnoDB locks each row that it reads. So the server must find the rows by an index, even if most rows are old, and
    // only this form of the statement can require an index. Without an alias: that would need a default database.
    prune: (table, token) => `DELETE ${table} FROM ${table} FORCE INDEX (by_token) WHERE token < ${token}`,
    // For an upsert, the number of changed rows depends on a setting of the connection, so further statements check the
    // tokens. Each statement counts, so it always changes its row. It finds one row by its key, because for several
    // names at once the server may read, and lock, the whole table.
    guard: (table, fences) => ({
      store: {
        sql:
          `INSERT INTO ${table} (name, token) VALUES ${fences.map(() => '(UNHEX(?), CAST(? AS SIGNED))').join(', ')} ` +
          'ON DUPLICATE KEY UPDATE token = GREATEST(token, VALUES(token))',
        parameters: fences.flatMap(inDigits),
      },
      check: fences.map((fence) => ({
        sql: `UPDATE ${table} SET guards = guards + 1 WHERE name = UNHEX(?) AND token = CAST(? AS SIGNED)`,
        parameters: inDigits(fence),
      })),
    }),
  },
};

export const dialects = Object.keys(DIALECTS) as readonly FencingDialect[];

export const dialectOf = (name: unknown): Dialect | undefined =>
  typeof name === 'string' && Object.hasOwn(DIALECTS, name) ? DIALECTS[name as FencingDialect] : undefined;
