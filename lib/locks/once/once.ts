import { refusalOfHandedOut } from '../../client/holding/late-result.js';
import { msUntil, now } from '../../client/holding/deadline.js';
import type { LockClient } from '../../client/lock-client.js';
import { currentScope, runInScope, Scope } from '../../client/scope/scope.js';
import { answerWithin, untilAnswered } from '../../client/waiting/answer-within.js';
import { assertKnownOptions, assertSignal } from '../../client/validation.js';
import { timeOf, type Duration } from '../../api/duration.js';
import { LockAbortedError, LockConfigError, LockLostError, LockTimeoutError } from '../../api/errors.js';
import { isLockLostError, isLockUnavailableError } from '../../api/error-guards.js';
import type { Lease } from '../../api/lock.js';
import type { Hold } from '../hold.js';
import { ONCE } from '../order.js';
import { StoreLock } from '../store-lock.js';
import type { OwnLease } from '../own-lease.js';

/** Options of work that runs once per period over all processes. */
export interface OnceOptions {
  /**
   * The time after a success during which no call runs the work. Must be equal in all processes. For a scheduled job,
   * choose less than the time between two runs.
   */
  period: Duration;
  /** The time after a failure during which no process runs the work. @default 0 */
  retryAfterFailure?: Duration | undefined;
  /** Longest wait of a call, for a running call and for the store together. @default Infinity */
  waitTime?: Duration | undefined;
  /** Ends the wait with LockAbortedError. */
  signal?: AbortSignal | undefined;
}

/** The value, if this call has run; else the age of the success that counts, ms. */
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

/** Runs work at most once per period over all processes, by a plain lock and a note of the last success. */
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
  const lock = new StoreLock(name, client);
  const { periods } = client.store;
  if (periods === undefined) throw cannotRemember(client, name);
  const longest = Math.min(waitTime, client.options.waitTime);
  const begun = now();
  const end = begun + waitTime;
  const assertWanted = () => {
    // The store of a closing service answers no more.
    client.assertOpen(name, { inside: currentScope() });
    if (signal?.aborted === true) throw new LockAbortedError(name, signal.reason);
  };
  const done = async (): Promise<OnceResult<T> | undefined> => {
    // A call that does not wait asks once, for as long as the store takes.
    const until = Math.min(end, now() + longest);
    const ask = async () => {
      assertWanted();
      const outage = () => client.store.outageOf?.(name);
      const bounds = longest === 0 ? {} : { until, outage };
      const recalled = answerWithin(periods.recall(name), name, bounds);
      return await recalled.catch((error: unknown) => {
        assertWanted();
        throw error;
      });
    };
    const since = await answerWithin(untilAnswered(ask, until), name, { signal });
    return since !== undefined && since < period ? { ran: false, since } : undefined;
  };
  // Mostly the note exists already, and no lock is needed.
  const known = await done();
  if (known !== undefined) return known;
  // At least 1 ms, even if the question took all the time: a wait time of 0 would let the store take its own time.
  const timeLeft = waitTime === 0 ? 0 : Math.max(1, msUntil(end));
  const take = () =>
    lock.using({ waitTime: timeLeft, signal, label: ONCE }, async (lease): Promise<OnceResult<T>> => {
      const hold = lock.findHold(here());
      return await inTurn(hold, () => work(lease, hold), bounds);
    });
  const work = async (lease: Lease, hold: Hold | undefined): Promise<OnceResult<T>> => {
    if (hold !== undefined) running.set(lease, hold);
    const found = await done();
    if (found !== undefined) return found;
    lease.assertHeld();
    const value = await run(lease as OwnLease, callback, pause);
    // Noted before the release, so that the next owner finds the note.
    const note = () => periods.remember({ name, owner: lease.owner, period });
    await untilNoted(note, lease, value);
    return { ran: true, value };
  };
  const bounds = { name, begun, until: end, least: 0, signal };
  const { inside } = here();
  const around = lock.findHold(here());
  // Work of another request may run in the async context of a running call, whose lock it must not enter.
  const isOfCall = (lease: object) => around !== undefined && running.get(lease) === around;
  const isInRunningCall = inside?.innermostLease(isOfCall) !== undefined;
  return await (isInRunningCall ? runInScope(Scope.apart(inside), take) : take());
}

const here = () => ({ inside: currentScope(), apart: undefined });

/** The leases of calls whose turn has come, with the hold that each has taken or entered. */
const running = new WeakMap<object, Hold>();
/** The last of the calls that have entered a hold, which run one after the other. */
const turns = new WeakMap<Hold, Promise<unknown>>();

/** @throws LockTimeoutError, LockAbortedError */
async function inTurn<T>(
  hold: Hold | undefined,
  run: () => Promise<T>,
  bounds: { name: string; begun: number; until: number; signal: AbortSignal | undefined; least: number },
): Promise<T> {
  const before = hold && turns.get(hold);
  const { name, begun } = bounds;
  const timedOut = () => new LockTimeoutError(name, Math.round(now() - begun), hold?.owner);
  const turn =
    before === undefined
      ? run()
      : answerWithin(before, name, bounds)
          .catch((error: unknown) => {
            throw isLockUnavailableError(error) ? timedOut() : error;
          })
          .then(run);
  const ended = () => undefined;
  // A call that has left its place lets no other one pass.
  if (hold !== undefined) turns.set(hold, Promise.all([before, turn.then(ended, ended)]));
  return await turn;
}

async function run<T>(
  lease: OwnLease,
  callback: (lease: Lease) => T | Promise<T>,
  pause: number,
): Promise<Awaited<T>> {
  try {
    const value = await callback(lease);
    await refusalOfHandedOut(value, 'once');
    return value;
  } catch (error) {
    if (pause > 0) lease.minHoldTime = Math.ceil(lease.heldFor()) + pause;
    throw error;
  }
}

/** Repeats the note until the lease ends, because only the holder may write it. */
async function untilNoted(
  note: () => Promise<'held' | 'taken' | 'deleted'>,
  lease: Lease,
  result: unknown,
): Promise<void> {
  const { name, owner } = lease;
  await untilAnswered(async () => {
    if (!lease.held) {
      const loss: unknown = lease.signal.reason;
      const { reason, forced } = isLockLostError(loss)
        ? loss
        : { reason: 'released' as const, forced: undefined };
      throw new LockLostError(name, { reason, owner, result, forced });
    }
    const state = await note();
    if (state !== 'held') throw new LockLostError(name, { reason: state, owner, result });
  });
}

function cannotRemember({ options }: LockClient, name: string): LockConfigError {
  const rule =
    options.location === 'nodes'
      ? 'runs nothing once per period: a note that a majority has could not be told from one that a minority has. Use ' +
        'connection for this'
      : 'runs nothing once per period: its store keeps no notes beside locks';
  return new LockConfigError(options.location, rule, { key: name });
}
