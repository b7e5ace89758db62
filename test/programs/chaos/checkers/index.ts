import type { History, Violation } from '../history.js';
import { budget } from './budget.js';
import { deadlocks } from './deadlocks.js';
import { exclusion } from './exclusion.js';
import { fencing } from './fencing.js';
import { linearizability } from './linearizability.js';
import { liveness, type LivenessBounds } from './liveness.js';
import { loss } from './loss.js';
import { order } from './order.js';
import { promises } from './promises.js';
import { isOfSeveral, severals } from './severals.js';
import { writes } from './writes.js';

const CHECKERS: Readonly<Record<string, (history: History, bounds: LivenessBounds) => Violation[]>> = {
  exclusion,
  writes,
  fencing,
  linearizability,
  liveness,
  severals,
  order,
  loss,
  budget,
  promises,
  deadlocks,
};

/**
 * A call for several locks waits in the queue of one of them, and keeps another one for a moment, without a hold that these
 * could see.
 */
const BLIND_TO_SEVERALS = ['order', 'linearizability'];

/** The checkers over one history. None knows what the locks are made of. */
export function check(history: History, bounds: LivenessBounds): Violation[] {
  const blind = history.attempts.some(isOfSeveral) ? BLIND_TO_SEVERALS : [];
  return Object.entries(CHECKERS).flatMap(([name, checker]) =>
    blind.includes(name) ? [] : checker(history, bounds),
  );
}
