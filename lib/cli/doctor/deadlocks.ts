import { describeCycle } from '../../api/deadlock.js';
import type { LockService } from '../../module/lock-service.js';
import { stateOf } from '../../module/service-state.js';
import { findLocks } from '../locks.js';
import type { Finding } from './finding.js';

/** ms from one look to the next. A deadlock over processes is certain after several. */
const PAUSE = 200;
const LOOKS = 15;
const MOST = 256;

/** The present deadlocks of all processes. It takes three seconds if callers wait. */
export async function deadlockFindings(service: LockService): Promise<Finding[]> {
  const { locks, more } = await findLocks(service, { prefix: '', state: 'waited', limit: MOST });
  const names = locks.filter(({ holders }) => holders.length > 0).map(({ name }) => name);
  const look = () => stateOf(service)?.lookForDeadlocks(names) ?? Promise.resolve([]);
  let found = names.length < 2 ? [] : await look();
  for (let looks = 1; names.length >= 2 && found.length === 0 && looks < LOOKS; looks++) {
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
    found = await look();
  }
  if (found.length === 0) {
    // A deadlock of the others may stand all the same.
    const among = more ? ` among ${String(MOST)} of the locks that are waited for` : '';
    return [{ level: 'ok', code: 'deadlock', node: undefined, message: `there is no deadlock${among}` }];
  }
  return found.map((cycle) => ({
    level: 'error',
    code: 'deadlock',
    node: undefined,
    message: `deadlock: ${describeCycle(cycle)}`,
    cure: 'Restart one of the processes. Then take the locks in one order: docs/guide/recipes/deadlocks.md',
  }));
}
