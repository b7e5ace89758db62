import { deadlineOf, type History, holdsOf, lagWithin, type Violation } from '../history.js';

/** How late the announcement may be, in ms that the process really ran. */
const PATIENCE = 50;

/** (g) A loss is announced at the deadline, at the latest 50 ms of the process's running time later. */
export function loss({ attempts, processes }: History): Violation[] {
  return holdsOf(attempts).flatMap((hold) => {
    const process = processes.get(hold.process);
    const deadline = deadlineOf(hold);
    const until = Math.min(
      hold.lost ?? Infinity,
      hold.releaseFrom ?? Infinity,
      process?.lastSeen ?? deadline,
    );
    const late = until - deadline - lagWithin(process, deadline, until + PATIENCE);
    if (late <= PATIENCE) return [];
    const message = `${hold.lock}: ${hold.process}#${String(hold.op)} heard of its loss ${late.toFixed(1)} ms late, or never`;
    return [{ checker: 'loss', at: deadline, message }];
  });
}
