import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { LockService } from '../../lib/index.js';
import { CLAIM } from '../../lib/port/queue-messages.js';
import { Stage } from '../pitfalls/stage.js';
import { RedisCluster } from '../support/redis-cluster.js';
import { Worker, type WorkerOptions } from '../support/worker.js';
import { FAIR, type Kind, lockOf, queued, semaphore, take, timed, WRITE } from './kinds.js';

const stage = Stage.set();
const PATIENT = { waitTime: Infinity };
const SLOW_MACHINE = 900;

interface Row {
  readonly kind: Kind;
  readonly dead: number;
}

const rowsOf = (kind: Kind, ...dead: number[]): Row[] => dead.map((count) => ({ kind, dead: count }));

/**
 * Locks that are held, for each of which so many processes wait that will not answer, and a service behind them.
 * @returns those whose waiter was granted before or long after a claim for each
 */
async function late(
  [holding, living]: readonly [LockService, LockService],
  url: WorkerOptions['url'],
  rows: readonly Row[],
  end: (worker: Worker) => Promise<void> | void,
): Promise<unknown[]> {
  const most = Math.max(...rows.map(({ dead }) => dead));
  const workers = await Promise.all(Array.from({ length: most }, () => Worker.start({ url, service: {} })));
  try {
    const release = await Promise.all(
      rows.map(async ({ kind, dead }, row) => {
        const name = `row:${String(row)}`;
        const holder = await lockOf(holding, name, kind).acquire();
        for (const [n, worker] of workers.slice(0, dead).entries()) {
          take(worker, name, kind, PATIENT).catch(() => undefined);
          await queued(holding, name, n + 1);
        }
        const waiting = lockOf(living, name, kind).acquire(PATIENT);
        await queued(holding, name, dead + 1);
        return async () => {
          const started = performance.now();
          await holder.release();
          const [lease] = await timed(waiting);
          const took = performance.now() - started;
          await lease.release();
          // Each look comes a little late; a second claim for each would be twice as long.
          const inTime = took > dead * CLAIM - 200 && took < dead * CLAIM * 1.5 + SLOW_MACHINE;
          return inTime ? [] : [{ kind, dead, took }];
        };
      }),
    );
    // What has just arrived gets its whole lease, as a holder that stops.
    await sleep(CLAIM + 100);
    for (const worker of workers) await end(worker);
    return (await Promise.all(release.map((go) => go()))).flat();
  } finally {
    for (const worker of workers) await worker.kill();
  }
}

describe('63: dead waiters side by side cost a claim each, however long the lease is', () => {
  it('one to five that stopped, on one server', async () => {
    const services = [stage.service(), stage.service()] as const;
    const rows = [...rowsOf(FAIR, 1, 2, 3, 4, 5), ...rowsOf(WRITE, 2), ...rowsOf(semaphore(1), 2)];
    const freeze = (worker: Worker) => {
      worker.freeze();
    };
    expect(await late(services, stage.server.url, rows, freeze)).toEqual([]);
  });

  it('one process that stopped with entries on both sides of a living one', async () => {
    const [holding, living] = [stage.service(), stage.service()];
    const hung = await stage.worker();
    const stand = async (place: number) => {
      take(hung, 'mixed', FAIR, PATIENT).catch(() => undefined);
      await queued(holding, 'mixed', place);
    };
    const holder = await lockOf(holding, 'mixed', FAIR).acquire();
    for (const place of [1, 2, 3]) await stand(place);
    const waiting = lockOf(living, 'mixed', FAIR).acquire(PATIENT);
    await queued(holding, 'mixed', 4);
    await stand(5);
    await sleep(CLAIM + 100);
    hung.freeze();
    await holder.release();
    const [lease, took] = await timed(waiting);
    await lease.release();
    expect(took).toBeLessThan(3 * CLAIM * 1.5 + SLOW_MACHINE);
  });

  describe('on a cluster', () => {
    let cluster: RedisCluster;
    beforeAll(async () => {
      cluster = await RedisCluster.start();
    }, 60_000);
    afterAll(() => cluster.stop());

    it('one to five that were killed', async () => {
      const connection = { cluster: cluster.addresses };
      const services = [stage.service({ connection }), stage.service({ connection })] as const;
      const rows = rowsOf(FAIR, 1, 2, 3, 4, 5);
      expect(await late(services, connection, rows, (worker) => worker.kill())).toEqual([]);
    });
  });
});
