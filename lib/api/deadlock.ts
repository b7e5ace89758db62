import { inQuotes } from '../runtime/text.js';

/** One caller of a deadlock. It holds the lock that the caller before it waits for. */
export interface DeadlockStep {
  /** The lock that it waits for, and the label of this lock. */
  readonly name: string;
  readonly label: string;
  /** What its process is called: the `label` of its module. */
  readonly process: string;
}

/** The callers in their order, the reporting one first. */
export const describeCycle = (cycle: readonly DeadlockStep[]): string =>
  cycle.map(({ name, process }) => `${inQuotes(process)} waits for "${inQuotes(name)}"`).join(', ');
