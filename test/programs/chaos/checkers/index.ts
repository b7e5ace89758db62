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

/** Every checker over one history. None knows what the locks are made of. */
export const check = (history: History, bounds: LivenessBounds): Violation[] => [
  ...exclusion(history),
  ...writes(history),
  ...fencing(history),
  ...linearizability(history),
  ...liveness(history, bounds),
  ...order(history),
  ...loss(history),
  ...budget(history),
  ...promises(history),
  ...deadlocks(history),
];
