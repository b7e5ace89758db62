import { answerWithin } from '../../client/waiting/answer-within.js';
import type { LockService } from '../../module/lock-service.js';
import { usageFailure } from '../command-failure.js';
import type { Given } from '../given.js';
import type { Screen } from '../output/screen.js';
import { hold } from '../run/hold.js';
import { assertNotInside } from '../run/inside.js';
import { tellOfOutage } from '../run/outage.js';
import { codeOfSignal } from '../run/signals.js';
import { StopSignals } from '../run/stop-signals.js';
import { openService } from '../service.js';

const WAIT = 10_000;
const LEASE = 30_000;
/** ms: a shorter lease is lost when a machine is busy for a moment. */
const SHORTEST = 1_000;
/** ms for the release: a Redis that is silent frees the lock by its lease. */
const GOODBYE = 1_000;

/** Holds a lock while a command runs. Resolves with the exit code of the command. */
export async function run(given: Given, screen: Screen): Promise<number> {
  if (given.program.length === 0) throw usageFailure('put the command to run after --');
  const waitTime = given.value('wait') === 'forever' ? Infinity : given.time('wait', WAIT, 0);
  const leaseTime = given.time('lease', LEASE, SHORTEST);
  const say = (text: string) => {
    screen.complain(`nestjs-distributed-lock: ${text}`);
  };
  const stop = new StopSignals();
  const service = openService(given, { leaseTime });
  try {
    const [name = ''] = given.names;
    const kind = given.flag('fair') ? 'fair' : 'lock';
    const acquire = async () => {
      await answerWithin(assertNotInside(service, name, given.environment), name, { signal: stop.signal });
      return await service.acquire(name, { waitTime, kind, signal: stop.signal });
    };
    const stopTelling = tellOfOutage(service, say);
    const lease = await acquire()
      .catch((error: unknown) => {
        if (stop.received === undefined) throw error;
        return undefined;
      })
      .finally(stopTelling);
    if (stop.received !== undefined || lease === undefined) return codeOfSignal(stop.received ?? 'SIGTERM');
    return await hold(lease, { service, given, say, leaseTime });
  } finally {
    await goodbye(service);
    stop.end();
  }
}

/** Releases the lock, or leaves its queue. */
async function goodbye(service: LockService): Promise<void> {
  const closed = service.close().catch(() => undefined);
  await Promise.race([closed, new Promise((resolve) => setTimeout(resolve, GOODBYE))]);
}
