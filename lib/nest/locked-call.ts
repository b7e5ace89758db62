import { isObservable, Observable, type Subscriber, takeUntil } from 'rxjs';
import { isLockLostError, isLockTimeoutError, LockConfigError, LockLostError } from '../lock.errors.js';
import type { LockService } from '../lock.service.js';
import type { Lease, Lock } from '../locks/lock.js';
import type { DistributedLockOptions } from './distributed-lock.options.js';
import { locksPassThrough } from './pass-through.js';

/** One call that is to run under a lock. */
export interface LockedCall {
  readonly service: LockService;
  readonly keys: string[];
  readonly options: DistributedLockOptions;
  /** What is called, for messages: `Orders.pay`. */
  readonly title: string;
}

/** Runs a call that gives a Promise. Errors of the call itself pass through untouched. */
export async function lockPromise(makeCall: () => LockedCall, run: () => unknown): Promise<unknown> {
  if (locksPassThrough()) return await run();
  const call = makeCall();
  return await holdFor(call, call.options.signal, async () => {
    const result = await run();
    if (isObservable(result)) throw unexpectedObservable(call.title);
    return result;
  });
}

/**
 * Runs a call that gives an Observable: nothing happens before somebody subscribes, and each subscription is a call
 * with a lock of its own, until the stream completes, fails or is unsubscribed from.
 *
 * @param whenSkipped what it gives when the lock is busy and `onBusy` gives nothing: no value, or `undefined` as a value
 */
export function lockObservable(
  makeCall: () => LockedCall,
  run: () => unknown,
  whenSkipped: 'no value' | 'undefined' = 'no value',
): Observable<unknown> {
  return new Observable((subscriber) => {
    if (locksPassThrough()) return (run() as Observable<unknown>).subscribe(subscriber);
    // Whoever unsubscribes while it waits leaves the line.
    const gone = new AbortController();
    const stream = async (): Promise<void> => {
      const call = makeCall();
      const { signal } = call.options;
      const either = signal === undefined ? gone.signal : AbortSignal.any([signal, gone.signal]);
      // The stream itself, rather than what `onBusy` gives instead.
      let streamed: true | undefined;
      const instead = await holdFor(call, either, async (lease) => {
        const source = run();
        if (!isObservable(source)) throw unexpectedValue(call.title);
        // A stream may go on for long: with onLost 'throw' it ends at the loss, not after it.
        await forward(source, subscriber, call.options.onLost === 'throw' ? lease.signal : undefined);
        streamed = true;
      });
      if (streamed || (instead === undefined && whenSkipped === 'no value')) return;
      if (isObservable(instead)) await forward(instead, subscriber);
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

/** Holds the lock for the call, and does what the options say when that fails. */
async function holdFor(
  { service, keys, options, title }: LockedCall,
  signal: AbortSignal | undefined,
  run: (lease: Lease) => unknown,
): Promise<unknown> {
  const {
    waitTime,
    leaseTime,
    renew,
    minHoldTime,
    onBusy = 'throw',
    onLost = 'log',
    kind = 'lock',
  } = options;
  const [key, another] = keys;
  let lease: Lease | undefined;
  let result: unknown;
  try {
    const using = { waitTime, leaseTime, renew, minHoldTime, signal };
    const callback = (held: Lease) => {
      lease = held;
      return run(held);
    };
    const name = key !== undefined && another === undefined ? key : keys;
    result = await (kind === 'lock'
      ? service.using(name, using, callback)
      : lockOf(service, keys, kind).using(using, callback));
  } catch (error) {
    // Only our own lock: one that the call itself waited for is the call's affair.
    if (lease !== undefined || onBusy === 'throw' || !isLockTimeoutError(error)) throw error;
    return onBusy === 'skip' ? undefined : onBusy({ keys, error });
  }
  if (onLost === 'throw' && lease !== undefined) assertKept(lease, title, result);
  return result;
}

function lockOf(service: LockService, keys: readonly string[], kind: 'fair' | 'read' | 'write'): Lock {
  const locks = keys.map((key) =>
    kind === 'fair' ? service.getFairLock(key) : service.getReadWriteLock(key)[kind],
  );
  const [lock, another] = locks;
  return lock !== undefined && another === undefined ? lock : service.getMultiLock(locks);
}

function assertKept({ signal, name, owner }: Lease, title: string, result: unknown): void {
  const loss: unknown = signal.aborted ? signal.reason : undefined;
  if (!isLockLostError(loss)) return;
  const cause = new Error(`${title} went on without its lock`, { cause: loss });
  throw new LockLostError(name, { reason: loss.reason, owner, cause, result });
}

/**
 * Passes values on until the source ends, nobody listens any more, or the lease is lost. The source hears of that also
 * while it emits, before it has given its subscription back: one that emits all at once would not stop otherwise.
 */
function forward(source: Observable<unknown>, to: Subscriber<unknown>, lost?: AbortSignal): Promise<void> {
  const stopped = new Observable<void>((stop) => {
    const end = () => {
      stop.next();
    };
    to.add(end);
    lost?.addEventListener('abort', end, { once: true });
    if (lost?.aborted === true) end();
  });
  return new Promise((resolve, reject) => {
    takeUntil<unknown>(stopped)(source).subscribe({
      next: (value) => {
        to.next(value);
      },
      error: reject,
      complete: resolve,
    });
  });
}

const unexpectedObservable = (title: string) =>
  new LockConfigError(
    'returns',
    `${title} has returned an Observable, which nobody has subscribed to. Declare Observable as its return type ` +
      "(imported as a value, not as a type), or set returns: 'observable', so that it is locked from subscription to completion",
  );

const unexpectedValue = (title: string) =>
  new LockConfigError(
    'returns',
    `${title} has to return an Observable, as its return type or returns: 'observable' says, and has returned ` +
      "something else. Declare what it returns, or set returns: 'promise'",
  );
