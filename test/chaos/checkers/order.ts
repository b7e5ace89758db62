import {
  type Attempt,
  byLock,
  type FaultInterval,
  type History,
  holdsOf,
  lagWithin,
  type Violation,
} from '../history.js';

/** What a request may take when nothing is wrong, besides what the machine and the servers take for any, ms. */
const PATIENCE = 150;
/** What a client may take after a fault until it is connected again and has asked again, ms. */
const RECOVERY = 2_000;

/**
 * (f) In the kinds with a queue nobody gets a token before somebody who came earlier, as long as that one's process
 * runs and reaches the store. Grants that come together are told apart by their tokens, which are in the store's order;
 * but who shares a lock and has been let in has not been passed by who asks before it is confirmed, and gets a token first.
 */
export function order({ attempts, faults, processes, server }: History): Violation[] {
  const found: Violation[] = [];
  for (const [lock, all] of byLock(attempts)) {
    const waits = holdsOf(all).filter(
      ({ kind, call, outer }) => kind !== 'lock' && call === 'acquire' && outer === undefined,
    );
    const byToken = waits.toSorted((a, b) => a.token - b.token);
    // Of those that were served later, who came first?
    let first: (typeof waits)[number] | undefined;
    for (const hold of byToken.toReversed()) {
      if (first !== undefined && first.invoked + PATIENCE < hold.invoked) {
        // Its own pauses, and those of the whole machine, in which its request or its message may have been late.
        const slow = [processes.get(first.process), processes.get('canary'), server].reduce(
          (sum, one) => sum + lagWithin(one, first!.invoked, first!.granted),
          0,
        );
        const patience = PATIENCE + slow;
        const together =
          hold.mode === 'shared' && first.mode === 'shared' && first.granted < hold.granted + patience;
        if (first.invoked + patience < hold.invoked && !together && !disturbed(first, faults)) {
          const ahead = (hold.invoked - first.invoked).toFixed(0);
          const message = `${lock}: ${hold.process}#${String(hold.op)} was served before ${first.process}#${String(first.op)}, who came ${ahead} ms earlier`;
          found.push({ checker: 'order', at: hold.granted, message });
        }
      }
      if ((first === undefined || hold.invoked < first.invoked) && !disturbed(hold, faults)) first = hold;
    }
  }
  return found;
}

/** Whether its place may have been lost, or its request late, through no fault of the queue. */
const disturbed = (
  { process, lock, invoked, granted = Infinity }: Attempt,
  faults: readonly FaultInterval[],
) =>
  faults.some(
    (fault) =>
      fault.severity !== 'harmless' &&
      (fault.process ?? process) === process &&
      (fault.lock ?? lock) === lock &&
      fault.to >= invoked - RECOVERY &&
      fault.from <= granted,
  );
