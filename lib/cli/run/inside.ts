import type { LockService } from '../../module/lock-service.js';
import { inQuotes } from '../../runtime/text.js';
import { usageFailure } from '../command-failure.js';
import { answerWithin } from '../service.js';
import { MARK, runsOf } from './mark.js';

/** ms: if Redis is silent, the acquisition says so. */
const TIME = 2_000;

/**
 * A run waits for its command, so a run of the same lock inside of it would wait for itself.
 * @throws Failure with the exit code of a wrong call
 */
export async function assertNotInside(
  service: LockService,
  name: string,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  const runs = runsOf(environment);
  if (runs.length === 0) return;
  const lock = await answerWithin(TIME, service.inspect(name)).catch(() => null);
  if (!lock?.holders.some(({ owner }) => runs.includes(owner))) return;
  throw usageFailure(
    `a run around this one holds "${inQuotes(name)}", and waits for this one: start what may wait without ${MARK}`,
  );
}
