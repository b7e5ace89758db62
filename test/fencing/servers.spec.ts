import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { LockService } from '../../lib/index.js';
import { RedisServer } from '../support/redis-server.js';
import { type DatabaseServer, missing, startMariaDb, startPostgres } from './database-server.js';
import { installLibraries } from './libraries/install.mjs';

const LIBRARIES = fileURLToPath(new URL('libraries', import.meta.url));
const lacks = missing.postgres ?? missing.mariadb;
const describeHere = lacks === undefined ? describe : describe.skip;
const because = lacks === undefined ? '' : ` (left out: ${lacks})`;

let postgres: DatabaseServer;
let mariadb: DatabaseServer;
let redis: RedisServer;

beforeAll(async () => {
  if (lacks !== undefined) return;
  installLibraries();
  [postgres, mariadb, redis] = await Promise.all([startPostgres(), startMariaDb(), RedisServer.start()]);
}, 300_000);

afterAll(async () => {
  if (lacks === undefined) await Promise.all([postgres.stop(), mariadb.stop(), redis.stop()]);
});

describeHere(`the adapters with their libraries${because}`, () => {
  it('let the present holder commit, refuse a former one, and refuse what is no transaction', async () => {
    const args = ['adapters.mjs', String(postgres.port), String(mariadb.port)];
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: LIBRARIES });
    const results = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as object);
    const kept = { first: 'committed', second: 'committed', again: 'committed', late: 'fenced', amount: 3 };
    const on = (dialect: string, ...adapters: string[]) =>
      adapters.map((adapter) => ({ adapter, dialect, ...kept, tokens: true, refused: 'LOCK_CONFIG' }));
    const expected = [
      ...on('postgres', 'typeorm', 'prisma', 'drizzle', 'knex', 'mikroOrm', 'sequelize', 'pg'),
      ...on('mysql', 'typeorm', 'drizzle', 'knex', 'sequelize', 'mysql2'),
    ];
    expect(results).toHaveLength(expected.length);
    expect(results).toEqual(expect.arrayContaining(expected));
  });
});

/** Processes that increment one counter, one of which is stopped again and again in the middle of a transaction. */
class Fleet {
  private readonly processes: ChildProcess[];
  private readonly begun = new EventEmitter();
  committed = 0;
  refused = 0;

  constructor(guard: string) {
    this.processes = Array.from({ length: 3 }, () => {
      const child = spawn(process.execPath, ['counter.mjs', redis.url, String(postgres.port), guard], {
        cwd: LIBRARIES,
        stdio: ['pipe', 'pipe', 'inherit'],
      });
      createInterface({ input: child.stdout }).on('line', (line) => {
        if (line === 'committed') this.committed++;
        if (line === 'refused') this.refused++;
        if (line === 'begun') this.begun.emit('begun', child);
      });
      return child;
    });
  }

  /**
   * Stops a holder that has read and not written, until the next holder has read, too. A guard that locks the row lets no
   * other holder so far: then the stop lasts for longer than the lease of 300 ms.
   */
  async pauseHolder(): Promise<void> {
    const [child] = (await once(this.begun, 'begun')) as [ChildProcess];
    child.kill('SIGSTOP');
    await Promise.race([once(this.begun, 'begun'), sleep(450)]);
    child.kill('SIGCONT');
  }

  async end(): Promise<void> {
    const ends = this.processes
      .filter(({ exitCode }) => exitCode === null)
      .map((child) => once(child, 'exit'));
    for (const child of this.processes) child.stdin?.end();
    await Promise.all(ends);
  }
}

describeHere(`a counter in PostgreSQL whose holders are paused in transactions${because}`, () => {
  let fleet: Fleet | undefined;

  afterEach(async () => {
    await fleet?.end();
  });

  const query = async (sql: string): Promise<string> => {
    const args = ['-h', '127.0.0.1', '-p', String(postgres.port), '-U', 'postgres', '-Atc', sql];
    return (await promisify(execFile)('psql', args)).stdout.trim();
  };
  const token = async () => Number(await query('SELECT max(token) FROM lock_fences'));
  const start = async (guard: string): Promise<Fleet> => {
    await query('DROP TABLE IF EXISTS counter, lock_fences');
    await query('CREATE TABLE lock_fences (name TEXT PRIMARY KEY, token BIGINT NOT NULL)');
    await query('CREATE TABLE counter (amount INTEGER NOT NULL)');
    await query('INSERT INTO counter VALUES (0)');
    fleet = new Fleet(guard);
    return fleet;
  };
  const lost = async (): Promise<number> =>
    (fleet?.committed ?? NaN) - Number(await query('SELECT amount FROM counter'));

  it('loses no increment, and its tokens grow, also when Redis forgets locks or gives them away', async () => {
    const counters = await start('first');
    const admin = new LockService({ connection: redis.url });
    const tokens: number[] = [];
    for (let faults = 0; faults < 12; faults++) {
      await counters.pauseHolder();
      if (faults % 3 === 1) await redis.client().flushall();
      if (faults % 3 === 2) await admin.forceRelease('counter');
      tokens.push(await token());
    }
    await admin.close();
    await counters.end();
    expect(await lost()).toBe(0);
    expect(counters.committed).toBeGreaterThan(12);
    expect(tokens).toEqual([...tokens].sort((a, b) => a - b));
  });

  it.each([
    ['is called after the write', 'last'],
    ['locks no row', 'unlocked'],
    ['is missing', 'none'],
  ])('loses increments when the guard %s', async (_, guard) => {
    const counters = await start(guard);
    do await counters.pauseHolder();
    while ((await lost()) <= 1); // one may be committed and not yet counted, or the reverse
    await counters.end();
    expect(await lost()).toBeGreaterThan(0);
  });
});
