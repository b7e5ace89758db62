import { type History, holdsOf, type Violation } from '../history.js';

/** Commands per attempt: one to ask, one to give back, and one for each time that it was busy or had to be renewed. */
const PER_ATTEMPT = 3;
/** Besides, where replicas have to confirm: a place is taken by a command of its own, and what a message grants is asked for again. */
const PER_CONFIRMATION = 2;
/** Commands per second and process that depend on time only: polls, renewals, repetitions. */
const PER_SECOND = 30;

/** (h) The server is asked no more often than the acquisitions need, and nobody asks in a loop. */
export function budget({ attempts, processes, commands, confirmed, drained }: History): Violation[] {
  if (commands === undefined || attempts.length === 0) return [];
  const asked = attempts.filter(({ call }) => call !== 'nested').length;
  const since = Math.min(...attempts.map(({ invoked }) => invoked));
  const perAttempt = PER_ATTEMPT + (confirmed ? PER_CONFIRMATION : 0);
  const allowed = perAttempt * asked + (PER_SECOND * processes.size * (drained - since)) / 1_000;
  if (commands <= allowed) return [];
  const granted = holdsOf(attempts).length;
  const message = `${String(commands)} commands for ${String(granted)} acquisitions, ${String(Math.round(allowed))} are allowed`;
  return [{ checker: 'budget', at: drained, message }];
}
