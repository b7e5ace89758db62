import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { guard } from '../../support/guard.js';
import { check } from './checkers/index.js';
import type { LivenessBounds } from './checkers/liveness.js';
import type { History, Violation } from './history.js';

const PROGRAM = fileURLToPath(import.meta.url);

interface Case {
  readonly history: History;
  readonly bounds: LivenessBounds;
}

/**
 * Checks a history in a process of its own: the search for an order takes seconds, in which the ways to the servers of
 * the other rounds, which this process keeps, would be dead.
 */
export async function judge(history: History, bounds: LivenessBounds): Promise<Violation[]> {
  const child = fork(PROGRAM, { serialization: 'advanced', execArgv: ['--import', 'tsx'] });
  guard(child);
  child.send({ history, bounds } satisfies Case);
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`The checkers ended with ${String(code)}`);
  });
  const [violations] = await Promise.race([once(child, 'message') as Promise<[Violation[]]>, ended]);
  child.disconnect();
  return violations;
}

if (process.argv[1] === PROGRAM) {
  // Ends when it is disconnected: an answer that is still on its way at the end of a process comes after that end.
  process.on('message', ({ history, bounds }: Case) => {
    process.send?.(check(history, bounds));
  });
}
