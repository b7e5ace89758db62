import type { History, Violation } from '../../chaos/history.js';

/** Where nothing has gone wrong, no call is told that the store cannot be reached. */
export function answers({ attempts, faults }: History): Violation[] {
  if (faults.some(({ severity }) => severity !== 'harmless')) return [];
  return attempts
    .filter(({ refusal }) => refusal === 'LOCK_UNAVAILABLE')
    .map(({ process, op, lock, invoked }) => ({
      checker: 'answers',
      at: invoked,
      message: `${lock}: ${process}#${String(op)} was told that the store is out of reach`,
    }));
}
