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
import { writes } from './writes.js';

const CHECKERS: Readonly<Record<string, (history: History, bounds: LivenessBounds) => Violation[]>> = {
  exclusion,
  writes,
  fencing,
  linearizability,
  liveness,
  order,
  loss,
  budget,
  promises,
  deadlocks,
};

/**
 * The checkers over one history. None knows what the locks are made of.
 * @param blind names of checkers that cannot judge this history
 */
export const check = (history: History, bounds: LivenessBounds, blind: readonly string[] = []): Violation[] =>
  Object.entries(CHECKERS).flatMap(([name, checker]) =>
    blind.includes(name) ? [] : checker(history, bounds),
  );
