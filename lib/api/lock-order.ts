import { inQuotes } from '../runtime/text.js';

/** A lock that was asked for under another one. */
export interface LockOrderStep {
  /** The label of the lock that was held; its name if it has no label of its own. */
  readonly held: string;
  /** The same of the lock that was asked for. */
  readonly acquired: string;
  /** File and line of the call that asked for it the first time; undefined if they cannot be told. */
  readonly at: string | undefined;
}

/** Locks that are taken in two orders, so that two callers can wait for each other. */
export interface LockOrderConflict {
  /** The lock that is asked for, and the one that is held. */
  readonly name: string;
  readonly heldName: string;
  /** The lock of the present call. */
  readonly step: LockOrderStep;
  /**
   * How callers came from the lock that is asked for now to the one that is held, when this was first seen. Empty if both
   * locks have one label: each may come first.
   */
  readonly former: readonly LockOrderStep[];
}

const quoted = (text: string): string => `"${inQuotes(text)}"`;

const siteOf = ({ at }: LockOrderStep): string =>
  at === undefined ? 'call not known' : `at ${inQuotes(at)}`;

const told = (step: LockOrderStep): string =>
  `${quoted(step.acquired)} under ${quoted(step.held)} (${siteOf(step)})`;

/** The fault, its consequence and the cure, on one line. */
export function describeConflict({ name, heldName, step, former }: LockOrderConflict): string {
  if (former.length === 0) {
    return (
      `The lock ${quoted(name)} is asked for under ${quoted(heldName)}, and both have the label ${quoted(step.held)} (${siteOf(step)}): another caller ` +
      'may hold the second and ask for the first, and both wait until their wait times end. Take both as one multi-lock, ' +
      'which takes its locks in one order'
    );
  }
  return (
    `Locks are taken in two orders, ${told(step)}, and ${former.map(told).join(', ')}: two callers can wait for each other ` +
    'until their wait times end. Take them in one order, or as one multi-lock'
  );
}
