import {
  type Attempt,
  byLock,
  type FaultInterval,
  type History,
  lagWithin,
  type Violation,
} from '../history.js';
import { type Turn, turnsOfCallers, turnsOfProcesses } from './turns.js';

/** What a request may take when nothing is wrong, besides what the machine and the servers take for any, ms. */
const PATIENCE = 150;
/** What a client may take after a fault until it is connected again and has asked again, ms. */
const RECOVERY = 2_000;

/**
 * (f) In a queue nobody gets a token before somebody who came earlier, as long as that one's process runs and reaches the
 * store. At a plain lock processes stand in the queue, and the callers of each in a line of their own. Grants that come
 * together are told apart by their tokens, which are in the store's order; but who shares a lock and has been let in has not
 * been passed by who asks before it is confirmed, and gets a token first.
 */
export function order(history: History): Violation[] {
  return [...byLock(history.attempts).values()].flatMap((all) => {
    const callers = turnsOfCallers(all);
    if (all[0]?.kind !== 'lock') return passed(callers, history);
    const processes = new Set(all.map(({ process }) => process));
    return [
      ...[...processes].flatMap((name) =>
        passed(
          callers.filter(({ hold }) => hold.process === name),
          history,
        ),
      ),
      ...(history.queues ? passed(turnsOfProcesses(all), history) : []),
    ];
  });
}

/** Turns that came after others of the same queue, and were served before them. */
function passed(turns: readonly Turn[], { faults, processes, server }: History): Violation[] {
  const found: Violation[] = [];
  // Of those that were served later, who came first?
  let first: Turn | undefined;
  for (const turn of turns.toSorted((a, b) => b.hold.token - a.hold.token)) {
    const { hold } = turn;
    if (turn.mayPass && first !== undefined && first.stoodFrom + PATIENCE < turn.cameAfter) {
      const other = first.hold;
      // Its own pauses, and those of the whole machine, in which its request or its message may have been late.
      const slow = [processes.get(other.process), processes.get('canary'), server].reduce(
        (sum, one) => sum + lagWithin(one, other.invoked, other.granted),
        0,
      );
      const patience = PATIENCE + slow;
      const together =
        hold.mode === 'shared' && other.mode === 'shared' && other.granted < hold.granted + patience;
      if (first.stoodFrom + patience < turn.cameAfter && !together) {
        const ahead = (turn.cameAfter - first.stoodFrom).toFixed(0);
        const message = `${hold.lock}: ${hold.process}#${String(hold.op)} was served before ${other.process}#${String(other.op)}, who came ${ahead} ms earlier`;
        found.push({ checker: 'order', at: hold.granted, message });
      }
    }
    const isFirst = first === undefined || turn.stoodFrom < first.stoodFrom;
    if (turn.mayBePassed && isFirst && !disturbed(hold, faults)) first = turn;
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
