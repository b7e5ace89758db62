import { refusalOfHandedOut } from '../../client/holding/late-result.js';
import { msUntil, now, timerAt } from '../../client/holding/deadline.js';
import type { LockClient } from '../../client/lock-client.js';
import { currentScope } from '../../client/scope/scope.js';
import { untilAborted } from '../../client/waiting/until-aborted.js';
import { assertKnownOptions, assertSignal } from '../../client/validation.js';
import { backoff } from '../../client/waiting/waiting.js';
import { timeOf, type Duration } from '../../api/duration.js';
import {
  isLockLostError,
  isLockUnavailableError,
  LockAbortedError,
  LockConfigError,
  LockLostError,
} from '../../api/errors.js';
import { answeredBy } from '../../client/waiting/answered-by.js';
import type { Lease } from '../../api/lock.js';
import { ONCE } from '../order.js';
import { PlainLock } from '../plain-lock.js';
import type { OwnLease } from '../own-lease.js';

/** How often work is to run over all processes. */
export interface OnceOptions {
  /**
   * How long a success counts, from its end on: as long no other call runs. All processes have to agree on it. For a job on
   * a schedule it is shorter than the time between two runs.
   */
  period: Duration;
  /** How long no process tries after a failure. @default 0 */
  retryAfterFailure?: Duration | undefined;
  /** How long a call waits, for another one that runs and for the store together. @default Infinity */
  waitTime?: Duration | undefined;
  /** Ends the wait, with LockAbortedError. */
  signal?: AbortSignal | undefined;
}

/** Whether this call has run, and what it has given; or how long ago the success was that counts, ms. */
export type OnceResult<T> =
  { readonly ran: true; readonly value: T } | { readonly ran: false; readonly since: number };

const KNOWN = ['period', 'retryAfterFailure', 'waitTime', 'signal'];

/** @throws LockConfigError */
export function checkedOnce(options: OnceOptions, owner = 'once', more: readonly string[] = []) {
  assertKnownOptions(options, [...KNOWN, ...more], owner);
  const { signal, retryAfterFailure = 0, waitTime = Infinity } = options;
  const period = timeOf('period', options.period, { least: 1 });
  const pause = timeOf('retryAfterFailure', retryAfterFailure);
  assertSignal(signal);
  return { period, pause, waitTime: timeOf('waitTime', waitTime, { unbounded: true }), signal };
}

/** Runs work at most once in a period, over all processes, by the plain lock of that name and a note beside it. */
export async function once<T>(
  client: LockClient,
  name: string,
  options: OnceOptions,
  callback: (lease: Lease) => T | Promise<T>,
): Promise<OnceResult<T>> {
  const { period, pause, waitTime, signal } = checkedOnce(options);
  if (typeof callback !== 'function') {
    throw new LockConfigError('once', 'needs a callback', { value: callback, key: name });
  }
  const lock = new PlainLock(name, client);
  const { periods } = client.store;
  if (periods === undefined) throw cannotRemember(client, name);
  const longest = Math.min(waitTime, client.options.waitTime);
  const end = now() + waitTime;
  const assertOpen = () => {
    client.assertOpen(name, { inside: currentScope() });
  };
  const done = async (): Promise<OnceResult<T> | undefined> => {
    assertOpen();
    if (signal?.aborted === true) throw new LockAbortedError(name, signal.reason);
    // A call that does not wait asks once, and the store has its own time to answer.
    const ask = () => {
      const answer = periods.recall(name);
      return longest === 0 ? answer : answeredBy(until, answer, name);
    };
    const until = Math.min(end, now() + longest);
    const since = await untilAborted(untilAnswered(ask, assertOpen, until, signal), signal, name);
    return since !== undefined && since < period ? { ran: false, since } : undefined;
  };
  // Mostly it is known already, and then no lock is needed.
  const known = await done();
  if (known !== undefined) return known;
  // Also where the question has taken the whole time: with a wait time of 0 the store has its own time to answer.
  const timeLeft = waitTime === 0 ? 0 : Math.max(1, msUntil(end));
  return await lock.using({ waitTime: timeLeft, signal, label: ONCE }, async (lease) => {
    const found = await done();
    if (found !== undefined) return found;
    lease.assertHeld();
    const value = await run(lease as OwnLease, callback, pause);
    // Before the release: the next owner finds the note.
    const note = () => periods.remember({ name, owner: lease.owner, period });
    await untilNoted(note, lease, value);
    return { ran: true, value };
  });
}

/**
 * One answer that is lost does not end the call.
 * @param assertOpen throws where the service is closing: its store answers no more
 */
async function untilAnswered<T>(
  ask: () => Promise<T>,
  assertOpen: () => void,
  until: number,
  signal: AbortSignal | undefined,
): Promise<T> {
  for (let failures = 0; ; failures++) {
    const pause = backoff(failures);
    try {
      return await ask();
    } catch (error) {
      if (!isLockUnavailableError(error)) throw error;
      assertOpen();
      const isOver = signal?.aborted === true || now() + pause >= until;
      if (error.permanent || isOver) throw error;
    }
    await pauseFor(pause);
    assertOpen();
  }
}

/** Keeps the process alive: a service that closes meanwhile leaves nothing else that would, and the call is to get its answer. */
const pauseFor = (time: number) => new Promise<void>((resolve) => timerAt(now() + time, resolve));

async function run<T>(
  lease: OwnLease,
  callback: (lease: Lease) => T | Promise<T>,
  pause: number,
): Promise<Awaited<T>> {
  try {
    const value = await callback(lease);
    await refusalOfHandedOut(value);
    return value;
  } catch (error) {
    if (pause > 0) lease.minHoldTime = Math.ceil(lease.heldFor()) + pause;
    throw error;
  }
}

/** Asks again for as long as the lease lasts: only its holder may make the note. */
async function untilNoted(
  note: () => Promise<'held' | 'taken' | 'deleted'>,
  lease: Lease,
  result: unknown,
): Promise<void> {
  const { name, owner } = lease;
  for (let failures = 0; ; failures++) {
    if (!lease.held) {
      const loss: unknown = lease.signal.reason;
      const { reason, forced } = isLockLostError(loss)
        ? loss
        : { reason: 'released' as const, forced: undefined };
      throw new LockLostError(name, { reason, owner, result, forced });
    }
    try {
      const state = await note();
      if (state === 'held') return;
      throw new LockLostError(name, { reason: state, owner, result });
    } catch (error) {
      if (!isLockUnavailableError(error) || error.permanent) throw error;
    }
    await pauseFor(backoff(failures));
  }
}

function cannotRemember({ options }: LockClient, name: string): LockConfigError {
  const rule =
    options.location === 'nodes'
      ? 'runs nothing once per period: a note that a majority has could not be told from one that a minority has. Use ' +
        'connection for this'
      : 'runs nothing once per period: its store keeps no notes beside locks';
  return new LockConfigError(options.location, rule, { key: name });
}
