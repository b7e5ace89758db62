import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { FencingTable } from '../../../lib/fencing/index.js';
import { LockService, type RedisConnection } from '../../../lib/index.js';
import { until } from '../../scenarios/until.js';
import { RedisServer } from '../../support/redis-server.js';
import { inSync, roleOf } from '../../support/replicas.js';
import { SentinelDeployment } from '../../support/sentinel.js';
import { CounterFleet } from '../counter-fleet.js';
import { type DatabaseServer, missing, startPostgres } from '../database-server.js';
import { installLibraries } from '../libraries/install.mjs';

const describeHere = missing.postgres === undefined ? describe : describe.skip;
const because = missing.postgres === undefined ? '' : ` (left out: ${missing.postgres})`;

/** Where the locks are, and what happens to them there while a holder is stopped. */
interface Place {
  readonly connection: RedisConnection;
  /** In turn. The first one is nothing: the stop itself is long enough. */
  readonly strikes: readonly (() => Promise<unknown>)[];
  stop(): Promise<unknown>;
}

async function single(): Promise<Place> {
  const redis = await RedisServer.start();
  const admin = new LockService({ connection: redis.url });
  const strikes = [
    () => Promise.resolve(),
    () => redis.client().flushall(),
    () => admin.forceRelease('counter'),
  ];
  return {
    connection: redis.url,
    strikes: [...strikes, ...strikes, ...strikes],
    stop: async () => {
      await admin.close();
      await redis.stop();
    },
  };
}

/** Every other failover is of a master that lives on for a while, and may still give out the lock. */
async function sentinel(): Promise<Place> {
  const deployment = await SentinelDeployment.start();
  const failover = (isStopped: boolean) => async () => {
    const former = await deployment.master();
    if (isStopped) former.freeze();
    const next = await deployment.failover(former);
    former.thaw();
    await until(async () => (await roleOf(former)) === 'slave');
    await inSync(next, deployment.replicasOf(next));
  };
  const strikes = [() => Promise.resolve(), failover(false), failover(true)];
  return {
    connection: { ...deployment.connection },
    strikes: [...strikes, ...strikes],
    stop: () => deployment.stop(),
  };
}

describeHere.each([
  ['on one server that forgets locks and gives them away', single],
  ['behind Sentinel, which replaces the master', sentinel],
])(`A counter in PostgreSQL whose holders are stopped in transactions, locks %s${because}`, (_, open) => {
  let postgres: DatabaseServer;
  let place: Place;
  let fleet: CounterFleet | undefined;

  beforeAll(async () => {
    installLibraries();
    [postgres, place] = await Promise.all([startPostgres(), open()]);
  }, 300_000);

  afterEach(async () => {
    await fleet?.end();
  });

  afterAll(async () => {
    await Promise.all([postgres.stop(), place.stop()]);
  });

  const query = async (sql: string): Promise<string> => {
    const args = ['-h', '127.0.0.1', '-p', String(postgres.port), '-U', 'postgres', '-Atc', sql];
    return (await promisify(execFile)('psql', args)).stdout.trim();
  };
  const token = async () => Number(await query('SELECT token FROM lock_fences'));
  const start = async (guard: string): Promise<CounterFleet> => {
    await query('DROP TABLE IF EXISTS counter, lock_fences');
    await query(new FencingTable({ dialect: 'postgres' }).createTableSql());
    await query('CREATE TABLE counter (amount INTEGER NOT NULL)');
    await query('INSERT INTO counter VALUES (0)');
    fleet = new CounterFleet(place.connection, postgres.port, guard);
    return fleet;
  };
  const lost = async (): Promise<number> =>
    (fleet?.committed ?? NaN) - Number(await query('SELECT amount FROM counter'));

  it('loses no increment, and its tokens grow', async () => {
    const counters = await start('first');
    const tokens: number[] = [];
    for (const strike of place.strikes) {
      await counters.pauseHolder(strike);
      tokens.push(await token());
    }
    await counters.pauseHolder(); // and goes on after the last one
    await counters.end();
    expect(await lost()).toBe(0);
    expect(counters.committed).toBeGreaterThan(place.strikes.length);
    expect(tokens).toEqual([...tokens].sort((a, b) => a - b));
  });

  it.each([
    ['is called after the write', 'last'],
    ['locks no row', 'unlocked'],
    ['is missing', 'none'],
  ])(
    'loses increments when the guard %s',
    async (_, guard) => {
      const counters = await start(guard);
      for (let n = 0; (await lost()) <= 1; n++) await counters.pauseHolder(place.strikes[n]); // one may not be counted yet
      await counters.end();
      expect(await lost()).toBeGreaterThan(0);
    },
    120_000,
  );
});
