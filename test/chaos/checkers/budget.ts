import { type History, holdsOf, type Violation } from '../history.js';

/**
 * Commands per attempt: one to ask, one to give back, and one for each time that it was busy or had to be renewed. Where replicas
 * have to confirm, what a message tells is asked for again, and each grant costs a WAIT.
 */
const PER_ATTEMPT = 5;
/** Commands per second and process that depend on time only: polls, renewals, repetitions. */
const PER_SECOND = 30;

/** (h) The server is asked no more often than the acquisitions need, and nobody asks in a loop. */
export function budget({ attempts, processes, commands, drained }: History): Violation[] {
  if (commands === undefined || attempts.length === 0) return [];
  const asked = attempts.filter(({ call }) => call !== 'nested').length;
  const since = Math.min(...attempts.map(({ invoked }) => invoked));
  const allowed = PER_ATTEMPT * asked + (PER_SECOND * processes.size * (drained - since)) / 1_000;
  if (commands <= allowed) return [];
  const granted = holdsOf(attempts).length;
  const message = `${String(commands)} commands for ${String(granted)} acquisitions, ${String(Math.round(allowed))} are allowed`;
  return [{ checker: 'budget', at: drained, message }];
}
