import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { type Execute, FencingTable, mysql2, pg as postgresql } from '../../../lib/fencing/index.js';
import type { Lease, Term } from '../../../lib/index.js';
import { until } from '../../scenarios/until.js';
import { TestEnvironment } from '../../support/test-environment.js';
import { type DatabaseServer, missing, startMariaDb, startPostgres } from '../database-server.js';
import { installLibraries } from '../libraries/install.mjs';

/** A connection, on which a transaction is begun and ended by hand. */
interface Connection {
  query(sql: string): Promise<unknown>;
  /** The first column of the first row. */
  one(sql: string): Promise<unknown>;
  /** @throws LockConfigError outside of a transaction */
  execute(): Execute;
  end(): Promise<void>;
}

interface Mysql2 {
  createConnection(options: object): Promise<Parameters<typeof mysql2>[0] & { end(): Promise<void> }>;
}

const lacks = missing.postgres ?? missing.mariadb;
const describeHere = lacks === undefined ? describe : describe.skip;
const because = lacks === undefined ? '' : ` (left out: ${lacks})`;
const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

const environment = new TestEnvironment();
let servers: Record<'postgres' | 'mysql', DatabaseServer>;
let open: Connection[] = [];

beforeAll(async () => {
  if (lacks !== undefined) return;
  installLibraries();
  const [postgres, mysql] = await Promise.all([startPostgres(), startMariaDb()]);
  servers = { postgres, mysql };
});

afterEach(async () => {
  await Promise.all(open.map((connection) => connection.end()));
  open = [];
  await environment.end();
});

afterAll(async () => {
  if (lacks === undefined) await Promise.all([servers.postgres.stop(), servers.mysql.stop()]);
});

async function onPostgres(): Promise<Connection> {
  const client = new pg.Client({ host: '127.0.0.1', port: servers.postgres.port, user: 'postgres' });
  await client.connect();
  const rows = async (sql: string) => (await client.query<unknown[]>({ text: sql, rowMode: 'array' })).rows;
  return {
    query: rows,
    one: async (sql) => (await rows(sql))[0]?.[0],
    execute: () => postgresql(client),
    end: () => client.end(),
  };
}

async function onMysql(options: object = {}): Promise<Connection> {
  const driver = createRequire(here('../libraries/package.json'))('mysql2/promise') as Mysql2;
  const place = { host: '127.0.0.1', port: servers.mysql.port, user: 'root', rowsAsArray: true };
  const client = await driver.createConnection({ ...place, ...options });
  const rows = async (sql: string) => (await client.query(sql, []))[0];
  await rows('CREATE DATABASE IF NOT EXISTS fences');
  await rows('USE fences');
  return {
    query: rows,
    one: async (sql) => ((await rows(sql)) as unknown[][])[0]?.[0],
    execute: () => mysql2(client),
    end: () => client.end(),
  };
}

describeHere.each([
  { dialect: 'postgres' as const, database: 'PostgreSQL', connectTo: onPostgres },
  { dialect: 'mysql' as const, database: 'MariaDB', connectTo: onMysql },
])(`transactions of $database${because}`, ({ dialect, connectTo }) => {
  const fences = new FencingTable({ dialect });
  const hex = dialect === 'postgres' ? "encode(convert_to(name, 'UTF8'), 'hex')" : 'LOWER(HEX(name))';
  const waiting = {
    postgres: "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'",
    mysql:
      "SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'Innodb_row_lock_current_waits'",
  }[dialect];
  let admin: Connection;

  const connect = async (options?: object): Promise<Connection> => {
    const connection = await connectTo(options);
    open.push(connection);
    return connection;
  };
  const begin = async (isolation?: string): Promise<Connection> => {
    const connection = await connect();
    if (isolation !== undefined && dialect === 'mysql')
      await connection.query(`SET TRANSACTION ISOLATION LEVEL ${isolation}`);
    await connection.query('START TRANSACTION');
    if (isolation !== undefined && dialect === 'postgres')
      await connection.query(`SET TRANSACTION ISOLATION LEVEL ${isolation}`);
    return connection;
  };
  const guard = ({ execute }: Connection, lease: Lease | Term) => fences.guard(execute(), lease);
  /** Leases of one lock for two holders, each of which believes that it has it. */
  const leases = async (...names: string[][]): Promise<Lease[]> => {
    const taken: Lease[] = [];
    for (const name of names) taken.push(await environment.service({ store: 'memory' }).acquire(name));
    return taken;
  };
  const term = (number: number): Term => ({ name: 'a', number, signal: new AbortController().signal });
  const isWaiting = () => until(async () => Number(await admin.one(waiting)) > 0);

  beforeEach(async () => {
    admin = await connect();
    for (const table of ['lock_fences', 'stock']) await admin.query(`DROP TABLE IF EXISTS ${table}`);
    await admin.query(fences.createTableSql());
    await admin.query('CREATE TABLE stock (amount INTEGER NOT NULL)');
    await admin.query('INSERT INTO stock VALUES (1)');
  });

  it.each(['READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE'])(
    'follow each other under %s, or the second one fails',
    async (isolation) => {
      const [older, newer] = await leases(['a'], ['a']);
      const [first, second] = [await begin(isolation), await begin(isolation)];
      await guard(first, older!);
      const amount = await first.one('SELECT amount FROM stock');
      const guarded = guard(second, newer!).then(
        () => 'guarded',
        (error: unknown) => (error as { code: string }).code,
      );
      await isWaiting();
      await first.query(`UPDATE stock SET amount = ${String(Number(amount) + 1)}`);
      await first.query('COMMIT');
      // PostgreSQL gives a transaction of these levels the state before its first statement, and so refuses to go on.
      const isRefused = dialect === 'postgres' && isolation !== 'READ COMMITTED';
      expect(await guarded).toBe(isRefused ? '40001' : 'guarded');
      if (!isRefused) expect(await second.one('SELECT amount FROM stock')).toBe(2);
    },
  );

  it('do not wait for each other with the same names in another order', async () => {
    const [one, other] = await leases(['a', 'b', 'c'], ['c', 'b', 'a']);
    for (let times = 0; times < 10; times++) {
      const both = [one, other].map(async (lease) => {
        const connection = await begin();
        const outcome = await guard(connection, lease!).then(
          () => 'guarded',
          (error: unknown) => {
            const { reason, code } = error as { reason?: string; code: string };
            return reason ?? code;
          },
        );
        await connection.query(outcome === 'guarded' ? 'COMMIT' : 'ROLLBACK');
        return outcome;
      });
      const [, last] = await Promise.all(both);
      expect(last).toBe('guarded'); // the other one may be from the past, and neither is a deadlock
      for (const outcome of await Promise.all(both)) expect(['guarded', 'fenced']).toContain(outcome);
    }
  });

  it('do not wait for transactions with other names', async () => {
    const all = Array.from({ length: 20 }, (_, n) => `name ${String(n)}`);
    const [one, other] = await leases(all, ['b']);
    for (const lease of [one, other]) {
      const connection = await begin(); // the rows are there from now on, and the table is as small as can be
      await guard(connection, lease!);
      await connection.query('COMMIT');
    }
    const [first, second] = [await begin(), await begin()];
    await guard(first, one!);
    await guard(second, other!);
    await second.query('COMMIT');
    await first.query('COMMIT');
  });

  it('hold names apart that are alike in a collation, and names of the full length', async () => {
    const names = ['a', 'A', 'a ', 'á', 'a\u0301', "a\\' OR 1=1 -- ", '🔒'.repeat(256)];
    const [past, present] = [[], []] as [Lease[], Lease[]];
    for (const service of [past, present]) for (const name of names) service.push(...(await leases([name])));
    for (const [n, lease] of [...present, ...past].entries()) {
      const connection = await begin();
      const guarded = guard(connection, lease);
      if (n < names.length) await guarded;
      else await expect(guarded).rejects.toMatchObject({ reason: 'fenced', key: lease.name });
      await connection.query(n < names.length ? 'COMMIT' : 'ROLLBACK');
    }
    const stored = (await admin.query(`SELECT ${hex} FROM lock_fences`)) as [string][];
    expect(stored.flat().sort()).toEqual(names.map((name) => Buffer.from(name).toString('hex')).sort());
  });

  it('may guard more than once, also with several leases', async () => {
    const [a, b] = await leases(['a'], ['b']);
    const connection = await begin();
    for (const lease of [a, b, a, b]) await guard(connection, lease!);
    await connection.query('COMMIT');
    expect(Number(await admin.one('SELECT count(*) FROM lock_fences'))).toBe(2);
  });

  it('tell tokens apart up to the greatest safe integer', async () => {
    const connection = await begin();
    await guard(connection, term(Number.MAX_SAFE_INTEGER));
    await expect(guard(connection, term(Number.MAX_SAFE_INTEGER - 1))).rejects.toMatchObject({
      reason: 'fenced',
    });
  });

  it('keep the guard of a savepoint until they end, and lose it if they roll back to before it', async () => {
    const [older, newer] = await leases(['a'], ['a']);
    const [first, second] = [await begin(), await begin()];
    await first.query('SAVEPOINT inner_one');
    await guard(first, older!);
    await first.query('RELEASE SAVEPOINT inner_one');
    const guarded = guard(second, newer!);
    await isWaiting();
    await first.query('COMMIT');
    await guarded;
    await second.query('ROLLBACK');

    const third = await begin();
    await third.query('SAVEPOINT inner_one');
    await guard(third, newer!);
    await third.query('ROLLBACK TO SAVEPOINT inner_one');
    // The row has the token of the last commit again.
    expect(Number(await third.one('SELECT token FROM lock_fences'))).toBe(older!.fencingToken);
  });

  describe('while old names are pruned', () => {
    const limit = 1_000; // the moment 1 ms
    const inTime = {
      postgres: "SET lock_timeout = '2s'",
      mysql: 'SET SESSION innodb_lock_wait_timeout = 2',
    }[dialect];
    const named = (name: string, number: number): Term => ({ ...term(number), name });
    const commit = async (connection: Connection, ...terms: Term[]) => {
      for (const one of terms) await guard(connection, one);
      await connection.query('COMMIT');
    };
    const prune = (connection: Connection) => connection.query(fences.pruneSql(new Date(limit / 1_000)));
    const stored = async () => {
      const rows = (await admin.query(`SELECT ${hex}, token FROM lock_fences`)) as [string, unknown][];
      return rows.map(([name, token]) => [Buffer.from(name, 'hex').toString(), Number(token)]).sort();
    };

    it('neither wait for that nor keep it waiting', async () => {
      // Most rows are old: to read all of them would be quicker.
      const old = Array.from({ length: 2_000 }, (_, n) => `('old ${String(n)}', 1)`);
      await admin.query(`INSERT INTO lock_fences (name, token) VALUES ${old.join()}`);
      await commit(await begin(), named('young', limit), named('younger', limit + 1));
      const [busy, pruning, later] = [await begin(), await begin(), await begin()];
      await guard(busy, named('busy', limit + 2));
      for (const connection of [pruning, later]) await connection.query(inTime);
      await prune(pruning);
      await commit(later, named('younger', limit + 3), named('other', limit + 4));
      await pruning.query('COMMIT');
      await busy.query('COMMIT');
      expect(await stored()).toEqual([
        ['busy', limit + 2],
        ['other', limit + 4],
        ['young', limit],
        ['younger', limit + 3],
      ]);
    });

    it('keep their own name, though it was old', async () => {
      await commit(await begin(), named('old', 1), named('older', 2));
      const [busy, pruning] = [await begin(), await begin()];
      await guard(busy, named('old', limit));
      const pruned = prune(pruning);
      await isWaiting();
      await busy.query('COMMIT');
      await pruned;
      await pruning.query('COMMIT');
      expect(await stored()).toEqual([['old', limit]]);
    });
  });

  it('find the table whose name has capitals and a schema', async () => {
    const place = new FencingTable({ dialect, table: 'Places.Fences' });
    const quote = dialect === 'postgres' ? '"' : '`';
    const drop =
      dialect === 'postgres' ? 'DROP SCHEMA IF EXISTS "Places" CASCADE' : 'DROP DATABASE IF EXISTS Places';
    await admin.query(drop);
    await admin.query(`CREATE SCHEMA ${quote}Places${quote}`);
    await admin.query(place.createTableSql());
    const connection = await begin();
    await place.guard(connection.execute(), term(1_000));
    await connection.query('COMMIT');
    const count = `SELECT count(*) FROM ${quote}Places${quote}.${quote}Fences${quote}`;
    expect(Number(await admin.one(count))).toBe(1);
    // On MySQL, the connection may have no database of its own.
    if (dialect === 'mysql')
      for (const sql of ['CREATE DATABASE gone', 'USE gone', 'DROP DATABASE gone'])
        await connection.query(sql);
    await connection.query(place.pruneSql(new Date(2)));
    expect(Number(await admin.one(count))).toBe(0);
  });

  it('are asked for: a connection that is in none is refused, also by an execute that was kept', async () => {
    const [lease] = await leases(['a']);
    const connection = await begin();
    const kept = connection.execute();
    await fences.guard(kept, lease);
    await connection.query('COMMIT');
    await expect(fences.guard(kept, lease)).rejects.toMatchObject({ code: 'LOCK_CONFIG' });
    const outside = async () => {
      await guard(connection, lease!);
    };
    await expect(outside()).rejects.toThrow('needs a transaction');
  });

  if (dialect === 'mysql')
    it('write a name the same way over any connection', async () => {
      const settings: [object, string][] = [
        [{ charset: 'latin1' }, ''],
        [{}, 'NO_BACKSLASH_ESCAPES'],
        [{}, 'ANSI_QUOTES'],
      ];
      const name = "é🔒\\', 1) -- ";
      for (const [options, mode] of settings) {
        const [lease] = await leases([name]);
        const connection = await connect(options);
        await connection.query(`SET SESSION sql_mode = '${mode}'`);
        await connection.query('START TRANSACTION');
        await guard(connection, lease!);
        await connection.query('COMMIT');
      }
      expect(await admin.query(`SELECT ${hex} FROM lock_fences`)).toEqual([
        [Buffer.from(name).toString('hex')],
      ]);
    });
});
