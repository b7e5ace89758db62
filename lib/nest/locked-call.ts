import { AsyncResource } from 'node:async_hooks';
import { from, isObservable, mergeAll, Observable, tap } from 'rxjs';
import { now, timerAt } from '../client/holding/deadline.js';
import { onAbort } from '../client/waiting/on-abort.js';
import { answerWithin } from '../client/waiting/answer-within.js';
import { timeOf } from '../api/duration.js';
import { LockConfigError, LockKeyError, LockLostError } from '../api/errors.js';
import { isLockClosedError, isLockLostError, isLockTimeoutError } from '../api/error-guards.js';
import { DEFAULTS } from '../api/defaults.js';
import type { AcquireOptions } from '../api/options.js';
import type { LockService } from '../module/lock-service.js';
import { stateOf } from '../module/service-state.js';
import type { Lease } from '../api/lock.js';
import {
  assertFinished,
  assertNotLate,
  HANDLER_CURE,
  METHOD_CURE,
  refusalOf,
  settled,
} from '../client/holding/late-result.js';
import type { ResolvedCall } from './decorator/method-options.js';
import { forward } from './forward.js';
import { locksPassThrough, runUnlocked } from './decorator/pass-through.js';

/** One call that is to run under a lock. */
export interface LockedCall {
  readonly service: LockService;
  readonly keys: string[] | Promise<string[]>;
  readonly options: ResolvedCall;
  /** The name of the called method, for messages: `Orders.pay`. */
  readonly title: string;
  /** A client waits for the answer, and may ask another instance if this one shuts down. */
  readonly isRequest?: true;
  /** The call alone answers its client: nothing can take its place. */
  readonly isSoleAnswer?: boolean;
  /** The response that the call has been given to answer on, and has not finished. */
  readonly unfinished?: (() => object | undefined) | undefined;
}

/** Gives the call; undefined if its service takes no locks for decorators. */
type MakeCall = () => LockedCall | undefined;

/** Runs a call that gives a Promise. Errors of the call itself pass through untouched. */
export async function lockPromise(makeCall: MakeCall, run: () => unknown): Promise<unknown> {
  if (locksPassThrough()) return await run();
  const call = makeCall();
  if (call === undefined) return await runUnlocked(run);
  return await holdFor(call, call.options.acquire.signal, async () => {
    const result = await run();
    if (isObservable(result)) throw unexpectedObservable(call.title);
    const refusal = refusalOf(result, call.title, METHOD_CURE);
    if (refusal !== undefined) await refusal;
    assertFinished(call.unfinished?.(), call.title);
    return result;
  });
}

/** How an Observable differs that is the answer of a handler. */
interface Answer {
  /** Calls back when the client goes away before it has its answer. @returns ends that */
  onClientGone?(callback: () => void): (() => void) | undefined;
  /**
   * For a value that is sent after the handler has ended: settles when it has been sent. Undefined for any other value.
   * @param lost cuts it off
   */
  sending(value: unknown, lost: AbortSignal | undefined): Promise<void> | undefined;
  /** The same for the whole answer, if the handler gives it by itself. */
  answering(lost: AbortSignal | undefined): Promise<void> | undefined;
  /** Whether the handler is announced to give an Observable, which ends when its subscriber leaves. A Promise goes on. */
  isStream(): boolean;
}

/**
 * Runs a call that gives an Observable. Nothing happens before a subscription. Each subscription is a call with a lock of
 * its own, until the stream completes, fails or is unsubscribed from. The subscriber is called in the async context of its
 * subscription.
 */
export function lockObservable(makeCall: MakeCall, run: () => unknown, answer?: Answer): Observable<unknown> {
  return new Observable((subscriber) => {
    if (locksPassThrough()) return streamOf(run()).subscribe(subscriber);
    const call = makeCall();
    if (call === undefined) return runUnlocked(() => streamOf(run()).subscribe(subscriber));
    // The source emits inside the scope of its lock. The subscriber has asked for its values, not for its lock.
    const outside = new AsyncResource('LockedSubscription', { requireManualDestroy: true });
    const deliver = (value: unknown): void => {
      outside.runInAsyncScope(() => {
        subscriber.next(value);
      });
    };
    // A subscriber that unsubscribes while it waits leaves the queue.
    const gone = new AbortController();
    const stream = async (): Promise<void> => {
      const { signal } = call.options.acquire;
      const abort = () => {
        gone.abort(signal?.reason);
      };
      if (signal !== undefined) subscriber.add(onAbort(signal, abort));
      // Only the waiting ends. A handler that runs is not interrupted, and keeps its lock.
      subscriber.add(
        answer?.onClientGone?.(() => {
          gone.abort(new Error('the client has closed its request'));
        }),
      );
      // The stream itself, and not the value that `onBusy` gives instead.
      let streamed: true | undefined;
      const instead = await holdFor(call, gone.signal, async (lease) => {
        const given = run();
        const source = isObservable(given) ? given : await given;
        if (!isObservable(source)) throw unexpectedValue(call.title);
        // A stream may go on for long: with onLost 'throw' it ends at the loss, not after it.
        const lost = call.options.onLost === 'throw' ? lease.signal : undefined;
        let sent: Promise<void> | undefined;
        let inspected: unknown;
        const inspect = (value: unknown) => {
          inspected = value;
          // To a subscriber that has left, nothing is sent.
          const sending = subscriber.closed ? undefined : answer?.sending(value, lost);
          if (sending === undefined) assertNotLate(value, call.title, answer ? HANDLER_CURE : METHOD_CURE);
          else sent = sending;
        };
        try {
          const goesOn = () => answer !== undefined && !answer.isStream();
          await forward(tap(inspect)(source), subscriber, deliver, { lost, goesOn });
        } catch (error) {
          // The work of a refused Promise has begun already, and needs the lock to its end.
          await settled(inspected);
          throw error;
        }
        assertFinished(call.unfinished?.(), call.title);
        if (lost?.aborted !== true) sent ??= answer?.answering(lost);
        streamed = true;
        if (sent === undefined) return;
        // The value that is sent belongs to a stream that has completed.
        outside.runInAsyncScope(() => {
          subscriber.complete();
        });
        await sent;
      });
      // Nest treats an answer's stream without a value as a fault: HTTP 500.
      if (streamed || (instead === undefined && answer === undefined)) return;
      if (isObservable(instead)) await forward(instead, subscriber, deliver);
      else subscriber.next(instead);
    };
    stream().then(
      () => {
        subscriber.complete();
      },
      (error: unknown) => {
        subscriber.error(error);
      },
    );
    return () => {
      gone.abort();
    };
  });
}

/** An Observable, or the Observable that a Promise gives. */
const streamOf = (given: unknown): Observable<unknown> =>
  isObservable(given) ? given : mergeAll<Observable<unknown>>()(from(given as Promise<Observable<unknown>>));

/** Holds the lock for the call, and follows the options when that fails. */
async function holdFor(
  call: LockedCall,
  signal: AbortSignal | undefined,
  run: (lease: Lease) => unknown,
): Promise<unknown> {
  const { service, options, title, isRequest, isSoleAnswer } = call;
  const { onBusy = 'throw', onLost = 'log' } = options;
  const [keys, acquire] = Array.isArray(call.keys)
    ? [call.keys, options.acquire]
    : await keysInTime(call.keys, call, options.acquire, signal);
  const [key, another] = keys;
  let lease: Lease | undefined;
  let result: unknown;
  try {
    const callback = (held: Lease) => {
      lease = held;
      return run(held);
    };
    const name = key !== undefined && another === undefined ? key : keys;
    // An interceptor with a key function knows its handler only now.
    const isComplete = signal === acquire.signal && acquire.label !== undefined;
    const complete = isComplete ? acquire : { ...acquire, signal, label: acquire.label ?? title };
    result = await service.using(name, complete, callback);
  } catch (error) {
    // Only for the lock of this call: the call itself handles a lock that it waited for.
    if (lease !== undefined || onBusy === 'throw') throw error;
    // A job that is not started any more needs no log line.
    const isJob = !isRequest && !isSoleAnswer;
    if (onBusy === 'skip' && isJob && isLockClosedError(error) && stateOf(service)?.draining === true)
      return undefined;
    if (!isLockTimeoutError(error)) throw error;
    const instead = onBusy === 'skip' ? undefined : await onBusy({ keys, error });
    // Nest would not send it, and the client would wait for ever.
    if (isSoleAnswer) throw error;
    return instead;
  }
  if (onLost === 'throw' && lease !== undefined) assertKept(lease, title, result);
  return result;
}

/**
 * A key that had to be waited for leaves less time for the lock. The lock is asked for once at least.
 * @throws LockAbortedError when the signal aborts first
 * @throws LockKeyError when the key takes longer than the longer one of the wait times of the call and of the module
 */
export async function keysInTime<Options extends Pick<AcquireOptions, 'waitTime'>>(
  keys: Promise<string[]>,
  { service, title }: Pick<LockedCall, 'service' | 'title'>,
  options: Options,
  signal?: AbortSignal,
): Promise<[string[], Options]> {
  const askedAt = now();
  const { waitTime: ofModule, maxWaitTime } = stateOf(service)?.settings ?? DEFAULTS;
  const given = timeOf('waitTime', options.waitTime ?? ofModule, { unbounded: true });
  const waitTime = Math.min(given, maxWaitTime);
  const limit = Math.max(waitTime, ofModule);
  const made = await answerWithin(within(limit, keys, title), `the key of ${title}`, { signal });
  const left = waitTime - (now() - askedAt);
  return [made, { ...options, waitTime: Math.max(0, Math.floor(left)) }];
}

function within(limit: number, keys: Promise<string[]>, title: string): Promise<string[]> {
  if (limit === Infinity) return keys;
  return new Promise((resolve, reject) => {
    const timer = timerAt(now() + limit, () => {
      reject(new LockKeyError(`The key function of ${title} has given no key for ${String(limit)} ms`));
    });
    void keys.then(resolve, reject).finally(() => {
      clearTimeout(timer);
    });
  });
}

function assertKept({ signal, name, owner }: Lease, title: string, result: unknown): void {
  const loss: unknown = signal.aborted ? signal.reason : undefined;
  if (!isLockLostError(loss)) return;
  const cause = new Error(`${title} went on without its lock`, { cause: loss });
  const { reason, forced } = loss;
  throw new LockLostError(name, { reason, owner, cause, result, forced });
}

const unexpectedObservable = (title: string) =>
  new LockConfigError(
    'returns',
    `${title} has returned an Observable, which was not subscribed to. Declare Observable as its return type ` +
      "(imported as a value, not as a type), or set returns: 'observable', so that it is locked from subscription to completion",
  );

const unexpectedValue = (title: string) =>
  new LockConfigError(
    'returns',
    `${title} has to return an Observable or a Promise of one, as its return type or returns: 'observable' says, and has returned ` +
      "something else. Declare what it returns, or set returns: 'promise'",
  );
