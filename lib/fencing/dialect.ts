/** A database that {@link FencingTable} knows. `mysql` includes MariaDB. */
export type FencingDialect = 'postgres' | 'mysql' | 'sqlite';

/** One statement with its parameters. */
export interface Statement {
  readonly sql: string;
  readonly parameters: unknown[];
}

/** A name and its fencing token. */
export type Fence = readonly [name: string, token: number];

/** The SQL of one dialect, for one table. */
export interface Dialect {
  create(table: string): string;
  /** In this order. The last one has to change a row for each fence; otherwise the table has seen a greater token. */
  guard(table: string, fences: readonly Fence[]): readonly Statement[];
}

/**
 * The token travels as text: some drivers send a number as a 32 bit integer or as a float. The inner cast tells PostgreSQL that
 * the parameter is text.
 */
const upsert: Dialect['guard'] = (table, fences) => {
  const rows = fences.map((_, n) => {
    const [name, token] = [`$${String(2 * n + 1)}`, `$${String(2 * n + 2)}`];
    return `(CAST(${name} AS TEXT), CAST(CAST(${token} AS TEXT) AS BIGINT))`;
  });
  const sql =
    `INSERT INTO ${table} AS seen (name, token) VALUES ${rows.join(', ')} ` +
    'ON CONFLICT (name) DO UPDATE SET token = excluded.token WHERE seen.token <= excluded.token';
  return [{ sql, parameters: parametersOf(fences) }];
};

const parametersOf = (fences: readonly Fence[]): unknown[] =>
  fences.flatMap(([name, token]) => [name, String(token)]);

const DIALECTS: Readonly<Record<FencingDialect, Dialect>> = {
  postgres: {
    create: (table) => `CREATE TABLE IF NOT EXISTS ${table} (name TEXT PRIMARY KEY, token BIGINT NOT NULL)`,
    guard: upsert,
  },
  sqlite: {
    create: (table) => `CREATE TABLE IF NOT EXISTS ${table} (name TEXT PRIMARY KEY, token INTEGER NOT NULL)`,
    guard: (table, fences) =>
      upsert(table, fences).map(({ sql, parameters }) => ({
        sql: sql.replaceAll(/\$\d+/g, '?'),
        parameters,
      })),
  },
  // Names are compared byte by byte, which a text column of MySQL does not do. The rows have to be locked, hence InnoDB.
  mysql: {
    create: (table) =>
      `CREATE TABLE IF NOT EXISTS ${table} (name VARBINARY(1024) PRIMARY KEY, token BIGINT NOT NULL, ` +
      'guards BIGINT NOT NULL DEFAULT 0) ENGINE = InnoDB',
    // The number of rows that an upsert has changed depends on a setting of the connection here. So a second statement tells
    // whether the token is in the table. It changes its row in any case, because it counts.
    guard: (table, fences) => [
      {
        sql:
          `INSERT INTO ${table} (name, token) VALUES ${fences.map(() => '(?, CAST(? AS SIGNED))').join(', ')} ` +
          'ON DUPLICATE KEY UPDATE token = GREATEST(token, VALUES(token))',
        parameters: parametersOf(fences),
      },
      {
        sql:
          `UPDATE ${table} SET guards = guards + 1 WHERE ` +
          fences.map(() => '(name = ? AND token = CAST(? AS SIGNED))').join(' OR '),
        parameters: parametersOf(fences),
      },
    ],
  },
};

export const dialects = Object.keys(DIALECTS) as readonly FencingDialect[];

export const dialectOf = (name: unknown): Dialect | undefined =>
  typeof name === 'string' && Object.hasOwn(DIALECTS, name) ? DIALECTS[name as FencingDialect] : undefined;
