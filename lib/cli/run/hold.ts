import { isatty } from 'node:tty';
import { onAbort } from '../../client/waiting/on-abort.js';
import type { LockService } from '../../module/lock-service.js';
import type { Lease } from '../../api/lock.js';
import { EXIT } from '../exit-code.js';
import type { Given } from '../given.js';
import { reasonOf } from '../failure.js';
import { NotStarted, startChild } from './child.js';
import { Leash } from './leash.js';
import { MARK, markedWith } from './mark.js';
import { codeOfSignal, passOn } from './signals.js';

interface Context {
  readonly service: LockService;
  readonly given: Given;
  readonly say: (text: string) => void;
  readonly leaseTime: number;
}

/** Runs the command under the lease. Resolves with its exit code. */
export async function hold(lease: Lease, { service, given, say, leaseTime }: Context): Promise<number> {
  const { name, owner, fencingToken } = lease;
  const env = {
    ...given.environment,
    LOCK_NAME: name,
    LOCK_TOKEN: String(fencingToken),
    [MARK]: markedWith(owner, given.environment),
  };
  const hasTerminal = [0, 1, 2].some(isatty);
  const { command, everything, ended } = startChild(given.program, env, { hasTerminal, owner });
  const stopPassing = passOn(hasTerminal, (signal) => {
    command.signal(signal);
  });
  let failure = '';
  const failures = service.events$.subscribe((event) => {
    if (event.type === 'renewal-failed') failure = ` (${reasonOf(event.error)})`;
  });
  const leash = new Leash(lease, leaseTime, everything, (reason) => {
    say(`${reason}${lease.signal.aborted ? '' : failure}: the command has to end`);
  });
  const { releaseRequested } = lease;
  const stopListening = onAbort(releaseRequested, () => {
    say(`${reasonOf(releaseRequested.reason)}: the command gets SIGTERM`);
    command.signal('SIGTERM');
  });
  try {
    const code = await ended;
    await leash.ended();
    // Its work may have gone on without the lock: that is no success, even with exit code 0.
    return leash.isEnding && code === EXIT.done ? codeOfSignal('SIGTERM') : code;
  } catch (error) {
    if (!(error instanceof NotStarted)) throw error;
    await leash.ended();
    say(error.message);
    return error.exitCode;
  } finally {
    stopListening();
    failures.unsubscribe();
    stopPassing();
  }
}
