import { constants } from 'node:os';
import { EXIT } from '../exit-code.js';

/** What asks a process to do something, and can be caught. */
export const ENDING = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2', 'SIGALRM'] as const;
/** Signals of the terminal, or of the shell to a job. */
const OTHERS = ['SIGWINCH', 'SIGCONT', 'SIGTSTP'] as const;

/** As shells do it. */
export const codeOfSignal = (signal: NodeJS.Signals): number => EXIT.signal + constants.signals[signal];

/**
 * Passes signals on.
 * @param hasTerminal the terminal tells all processes of the job itself, of its keys and its size. Stopping is left to the
 * system there, which stops all of them
 * @returns ends it
 */
export function passOn(hasTerminal: boolean, send: (signal: NodeJS.Signals) => void): () => void {
  const signals: readonly NodeJS.Signals[] = hasTerminal ? ENDING : [...ENDING, ...OTHERS];
  const ofTerminal = new Set<NodeJS.Signals>(hasTerminal ? ['SIGINT', 'SIGQUIT'] : []);
  const listeners = signals.map((signal) => {
    const listener = () => {
      if (!ofTerminal.has(signal)) send(signal);
    };
    process.on(signal, listener);
    return () => process.off(signal, listener);
  });
  return () => {
    for (const stop of listeners) stop();
  };
}
