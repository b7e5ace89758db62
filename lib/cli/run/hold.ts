import type { Lease } from '../../locks/lock.js';
import { EXIT } from '../exit-code.js';
import type { Given } from '../given.js';
import type { Screen } from '../output/screen.js';
import { NotStarted, startChild } from './child.js';
import { Leash } from './leash.js';
import { codeOfSignal, passOn } from './signals.js';
import type { StopSignals } from './stop-signals.js';

interface Context {
  readonly given: Given;
  readonly screen: Screen;
  readonly leaseTime: number;
  readonly stop: StopSignals;
}

/** Runs the command under the lease. Resolves with its exit code. */
export async function hold(lease: Lease, { given, screen, leaseTime, stop }: Context): Promise<number> {
  const env = { ...given.environment, LOCK_NAME: lease.name, LOCK_TOKEN: String(lease.fencingToken) };
  const hasTerminal = [process.stdin, process.stdout, process.stderr].some(isTerminal);
  const say = (text: string) => {
    screen.complain(`nestjs-distributed-lock: ${text}`);
  };
  const { processes, ended } = startChild(given.program, env, hasTerminal);
  // In one turn with the start: no signal comes between.
  const stopPassing = passOn(hasTerminal, (signal) => {
    processes.signal(signal);
  });
  stop.end();
  const leash = new Leash(lease, leaseTime, processes, (reason) => {
    say(`${reason}: the command has to end`);
  });
  lease.releaseRequested.addEventListener('abort', () => {
    say('the lock is asked for: the command gets SIGTERM');
    processes.signal('SIGTERM');
  });
  try {
    const code = await ended;
    await leash.ended();
    // Its work may have gone on without the lock: that is no success, whatever it says.
    return leash.isEnding && code === EXIT.done ? codeOfSignal('SIGTERM') : code;
  } catch (error) {
    if (!(error instanceof NotStarted)) throw error;
    await leash.ended();
    say(error.message);
    return error.exitCode;
  } finally {
    stopPassing();
  }
}

const isTerminal = ({ isTTY }: { isTTY?: boolean }): boolean => isTTY === true;
