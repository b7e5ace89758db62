import {
  type Attempt,
  byLock,
  endOf,
  type FaultInterval,
  type History,
  holdsOf,
  lagWithin,
  type Violation,
} from '../history.js';
import { Losses } from './losses.js';

export interface Overlap {
  readonly lock: string;
  readonly from: number;
  readonly to: number;
  readonly holds: readonly Attempt[];
  /** The fault that made the store forget one of them. */
  readonly explainedBy?: FaultInterval | undefined;
}

/** All holds that went on at the same time and must not have, those that a loss of data explains among them. */
export function overlaps(history: History): Overlap[] {
  const losses = new Losses(history);
  const found: Overlap[] = [];
  for (const [lock, attempts] of byLock(history.attempts)) {
    let active: Attempt[] = [];
    // Whoever enters again holds by the outer hold.
    for (const hold of holdsOf(attempts).filter(({ outer }) => outer === undefined)) {
      const from = hold.granted;
      active = active.filter((other) => endOf(other) > from);
      if (endOf(hold) > from) {
        const others = inTheWay(hold, active);
        active.push(hold);
        if (others.length === 0) continue;
        const to = Math.min(endOf(hold), Math.max(...others.map(endOf)));
        const holds = [...others, hold];
        const explainedBy = holds
          .map((one) => losses.explain(one, from, to))
          .find((fault) => fault !== undefined);
        found.push({ lock, from, to, holds, explainedBy });
      }
    }
  }
  return found;
}

/** (a) No two holds overlap that exclude each other: readers and permits by their rules. */
export function exclusion(history: History): Violation[] {
  return overlaps(history)
    .filter((overlap) => overlap.explainedBy === undefined || !told(overlap, history))
    .map(({ lock, from, to, holds, explainedBy }) => ({
      checker: 'exclusion',
      at: from,
      message:
        `${lock}: ${holds.map(({ process, op }) => `${process}#${String(op)}`).join(' and ')} ` +
        `held it together for ${(to - from).toFixed(1)} ms` +
        (explainedBy === undefined ? '' : `, and ${explainedBy.fault} was not announced at the next renewal`),
    }));
}

/** Those that should have kept the hold out. */
function inTheWay(hold: Attempt, active: readonly Attempt[]): Attempt[] {
  if (hold.kind === 'semaphore') return active.length < hold.capacity ? [] : [...active];
  return active.filter((other) => hold.mode === 'exclusive' || other.mode === 'exclusive');
}

/**
 * Where the store forgot a hold and nothing else was wrong, the next renewal tells: a third of the lease, and what
 * the command may take.
 */
function told({ from, to, holds, explainedBy: fault }: Overlap, history: History): boolean {
  if (fault === undefined) return false;
  const lease = Math.max(...holds.map(({ leaseTime }) => leaseTime));
  const undisturbed = history.faults.every(
    (other) =>
      other === fault ||
      other.severity === 'harmless' ||
      other.to < fault.from - lease ||
      other.from > fault.to + lease,
  );
  if (!undisturbed || holds.some(({ renewed, extensions }) => !renewed || extensions.length > 0)) return true;
  const lag = Math.max(
    ...holds.map(({ process }) => lagWithin(history.processes.get(process), fault.from, to)),
  );
  return to - Math.max(from, fault.to) <= lease / 3 + lease / 6 + 100 + lag;
}
