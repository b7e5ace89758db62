import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { LockService } from '../../lib/index.js';
import { CLAIM } from '../../lib/stores/lock-store.js';
import { Stage } from '../pitfalls/stage.js';
import { RedisCluster } from '../support/redis-cluster.js';
import { Worker, type WorkerOptions } from '../support/worker.js';
import { FAIR, type Kind, lockOf, queued, semaphore, take, timed, WRITE } from './kinds.js';

const stage = Stage.set();
const PATIENT = { waitTime: Infinity };
const SLOW_MACHINE = 900;

/** Holds a lock for which so many processes wait that will not answer, and a service behind them. */
async function behind(
  [holding, living]: readonly [LockService, LockService],
  url: WorkerOptions['url'],
  [kind, dead]: readonly [Kind, number],
  end: (worker: Worker) => Promise<void> | void,
): Promise<void> {
  const name = `row:${String(dead)}`;
  const workers = await Promise.all(Array.from({ length: dead }, () => Worker.start({ url, service: {} })));
  try {
    const holder = await lockOf(holding, name, kind).acquire();
    for (const [n, worker] of workers.entries()) {
      take(worker, name, kind, PATIENT).catch(() => undefined);
      await queued(holding, name, n + 1);
    }
    const waiting = lockOf(living, name, kind).acquire(PATIENT);
    await queued(holding, name, dead + 1);
    // What has just arrived gets its whole lease, as a holder that stops.
    await sleep(CLAIM + 100);
    for (const worker of workers) await end(worker);
    const started = performance.now();
    await holder.release();
    const [lease] = await timed(waiting);
    const took = performance.now() - started;
    await lease.release();
    expect(took).toBeGreaterThan(dead * CLAIM - 200);
    // Each look comes a little late; a second claim for each would be twice as long.
    expect(took).toBeLessThan(dead * CLAIM * 1.5 + SLOW_MACHINE);
  } finally {
    for (const worker of workers) await worker.kill();
  }
}

const ROWS: readonly (readonly [string, Kind, number])[] = [
  ['fair', FAIR, 1],
  ['fair', FAIR, 2],
  ['fair', FAIR, 3],
  ['fair', FAIR, 4],
  ['fair', FAIR, 5],
];

describe('63: dead waiters side by side cost a claim each, however long the lease is', () => {
  it.each<readonly [string, Kind, number]>([...ROWS, ['write', WRITE, 2], ['semaphore', semaphore(1), 2]])(
    'one server, %s, %#: stopped',
    async (_, kind, dead) => {
      const services = [stage.service(), stage.service()] as const;
      await behind(services, stage.server.url, [kind, dead], (worker) => {
        worker.freeze();
      });
    },
    60_000,
  );

  it('one process that stopped with places on both sides of a living one', async () => {
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

    it.each(ROWS)(
      '%s, %#: killed',
      async (_, kind, dead) => {
        const connection = { cluster: cluster.addresses };
        const services = [stage.service({ connection }), stage.service({ connection })] as const;
        await behind(services, connection, [kind, dead], (worker) => worker.kill());
      },
      60_000,
    );
  });
});
