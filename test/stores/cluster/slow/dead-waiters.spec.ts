import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import type { LockService } from '../../../../lib/index.js';
import { CLAIM } from '../../../../lib/store/queue-messages.js';
import { Stage } from '../../../pitfalls/stage.js';
import { Worker, type WorkerOptions } from '../../../support/worker.js';
import { FAIR, type Kind, lockOf, queued, take } from '../../../queue/kinds.js';
import { clusterOfAll } from '../../../support/test-servers.js';

const stage = Stage.set();
const PATIENT = { waitTime: Infinity };
/** ms: less than a lease. Worlds judge the number of claims. */
const SLOW_MACHINE = 20_000;

interface Row {
  readonly kind: Kind;
  readonly dead: number;
}

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
          const lease = await waiting;
          const took = performance.now() - started;
          await lease.release();
          const inTime = took > dead * CLAIM - 200 && took < dead * CLAIM + SLOW_MACHINE;
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

describe('63: dead waiters side by side on a cluster, which tells no process of the subscribers', () => {
  const cluster = clusterOfAll();

  it('one to five that were killed cost a claim each', async () => {
    const connection = { cluster: cluster.addresses };
    const services = [stage.service({ connection }), stage.service({ connection })] as const;
    const rows = [1, 2, 3, 4, 5].map((dead) => ({ kind: FAIR, dead }));
    expect(await late(services, connection, rows, (worker) => worker.kill())).toEqual([]);
  });
});
