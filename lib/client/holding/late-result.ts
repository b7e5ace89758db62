import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { isMap, isPromise, isSet } from 'node:util/types';
import { isObservable } from 'rxjs';
import { LockConfigError } from '../../api/errors.js';

/**
 * A result whose reader uses it after the call, without the lock. Two processes could then produce its rows, files or
 * events at the same time.
 */
type LateResult =
  | 'an iterator'
  | 'an async iterator'
  | 'a stream'
  | 'a StreamableFile'
  | 'a Response'
  | 'a Promise'
  | 'a response';

/** A collection is iterable but not late, because its elements exist already. `lateInside` checks the elements. */
export function lateResult(value: unknown): LateResult | undefined {
  if (isThenable(value)) return 'a Promise';
  if (typeof value !== 'object' || value === null) return undefined;
  if (isStreamableFile(value)) return isComplete(value.getStream()) ? undefined : 'a StreamableFile';
  // A Response does not show whether its body is in memory or still arrives.
  if (isResponse(value)) return value.body && value.bodyUsed !== true ? 'a Response' : undefined;
  // Without a stream, the method has returned the response so that its caller continues it: `res.status(201)`.
  if (isPipedInto(value)) return 'a response';
  if (isStream(value)) return isComplete(value) ? undefined : 'a stream';
  // `in` instead of a read: the deep mocks of test libraries return a function for every property.
  if (Symbol.asyncIterator in value) return 'an async iterator';
  if (Symbol.iterator in value && 'next' in value && typeof value.next === 'function') return 'an iterator';
  return undefined;
}

/**
 * Most values of a collection that are checked. If `Promise.all` is missing, the first element is already a Promise,
 * and a result of 1,000,000 rows must not block the event loop.
 */
const LOOKED_AT = 1_000;

/** The values of an array, a Map, a Set, or a plain object, one level deep. Other objects have none. */
function valuesOf(value: unknown): Iterable<unknown> {
  if (typeof value !== 'object' || value === null) return [];
  if (Array.isArray(value) || isSet(value)) return value;
  if (isMap(value)) return value.values();
  return isPlain(value) ? dataOf(value) : [];
}

/** Skips getters: they are code of the application that might have effects. */
function* dataOf(value: object): Generator {
  for (const key in value) yield Object.getOwnPropertyDescriptor(value, key)?.value;
}

/** A plain object of any realm: the prototype of its prototype is null. */
const isPlain = (value: object): boolean => {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
};

/** The kind of the first late value in a collection. */
function lateInside(value: unknown): LateResult | undefined {
  let looked = 0;
  for (const element of valuesOf(value)) {
    const late = lateResult(element);
    if (late !== undefined) return late;
    if (++looked === LOOKED_AT) return undefined;
  }
  return undefined;
}

/** Whether Nest sends the value after the handler's call has ended. For a Promise, Nest waits and sends its value. */
export const isSentLater = (value: unknown): boolean =>
  isUnfinished(value) || (lateResult(value) !== undefined && !isThenable(value));

/**
 * Resolves when the Promise, or each Promise in a collection, has settled. Skips thenables that are not native
 * Promises, because the wait could start their work.
 */
export async function settled(value: unknown): Promise<void> {
  await Promise.allSettled([value, ...valuesOf(value)].filter(isPromise));
}

/**
 * Refuses a result that its caller would read without the lock.
 * @throws LockConfigError; the refused result is closed, because it may hold a file open and no code will read it
 */
export function assertNotLate(value: unknown, title: string, cure: string): void {
  const late = lateResult(value);
  const inside = late === undefined ? lateInside(value) : undefined;
  if (late === undefined && inside === undefined) return;
  if (late === 'a response') assertFinished(value as object, title);
  for (const each of [value, ...valuesOf(value)]) {
    if (isThenable(each)) void settled(each);
    else if (lateResult(each) !== undefined) discard(each as object);
  }
  const found = late ?? `a collection with ${String(inside)} in it`;
  const promised = late === undefined ? PROMISES_CURE : PROMISE_CURE;
  throw new LockConfigError(
    title,
    `has given ${found}, which is read when the call has ended and its lock is gone. ` +
      ((late ?? inside) === 'a Promise' ? promised : cure),
  );
}

/**
 * As `assertNotLate`, for a result that no code has received yet.
 * @returns undefined if the result is not late; else a promise that rejects after the Promises in the result have
 *   settled, because their work has begun and needs the lock to its end
 */
export function refusalOf(value: unknown, title: string, cure: string): Promise<never> | undefined {
  try {
    assertNotLate(value, title, cure);
    return undefined;
  } catch (error) {
    return settled(value).then(() => {
      throw error;
    });
  }
}

/**
 * Refuses a call that has left its response unfinished.
 * @throws LockConfigError; the response is cut off
 */
export function assertFinished(unfinished: object | undefined, title: string): void {
  if (unfinished === undefined) return;
  discard(unfinished);
  throw new LockConfigError(
    title,
    `has left its response unfinished, whose rest is sent when the call has ended and its lock is gone. ${RESPONSE_CURE}`,
  );
}

/** As `refusalOf`, for the result of a callback or of a leader's method, in which no other code subscribes to an Observable. */
export function refusalOfHandedOut(value: unknown, title: string): Promise<never> | undefined {
  // `in` instead of a read, because of deep mocks.
  if (typeof value !== 'object' || value === null || !('subscribe' in value) || !isObservable(value))
    return refusalOf(value, title, CALL_CURE);
  const rule = `has given an Observable, which runs when the call has ended and its lock is gone. ${CALL_CURE}`;
  return Promise.reject(new LockConfigError(title, rule));
}

const CALL_CURE =
  'Read it to its end in the call; lastValueFrom and toArray do that with an Observable. ' +
  'If its reader needs no lock, give a function that returns it';

const PROMISE_CURE =
  'Use mergeMap or concatMap in place of map, so that the Observable gives what the Promise does';

const PROMISES_CURE = 'Wait for them in the call, as with Promise.all';

const RESPONSE_CURE =
  'Use LockInterceptor, which holds the lock until the response has been sent, or wait for its end in the call';

export const METHOD_CURE =
  'Read it to its end in the method, or return an Observable. If it is the answer of an HTTP handler, ' +
  'use LockInterceptor, which holds the lock until the answer has been sent';

export const HANDLER_CURE = 'Read it to its end in the handler, or return an Observable of its values';

/** The methods of Node's streams, web streams and iterators. */
type Source = Partial<Record<'on' | 'destroy' | 'cancel' | 'return', (...args: unknown[]) => unknown>>;

/** An HTTP response that has not been ended. */
const isOpenResponse = (value: unknown): value is ServerResponse => {
  if (typeof value !== 'object' || value === null || !('setHeader' in value)) return false;
  const { writableEnded, destroyed } = value as Partial<ServerResponse>;
  return writableEnded === false && destroyed !== true;
};

/** A stream that pipes into a response listens to its `unpipe` event. Responses of test libraries may be no emitters. */
export const isPipedInto = (value: unknown): value is ServerResponse =>
  isOpenResponse(value) && 'listenerCount' in value && value.listenerCount('unpipe') > 0;

/**
 * No header has been sent, or a stream pipes into the response. Headers that were sent without a stream mean that the
 * answer is complete: middleware that compresses, or that saves a session, ends the response later.
 */
export const isUnfinished = (value: unknown): value is ServerResponse =>
  isOpenResponse(value) && (!value.headersSent || isPipedInto(value));

export const isThenable = (value: unknown): boolean =>
  (typeof value === 'function' || (typeof value === 'object' && value !== null)) &&
  'then' in value &&
  typeof value.then === 'function';

const isStream = (value: object): boolean => ('pipe' in value && 'read' in value) || 'getReader' in value;

/** A Response as from `fetch`. */
const isResponse = (value: object): value is { body?: object | null; bodyUsed?: boolean } =>
  'bodyUsed' in value && Object.prototype.toString.call(value) === '[object Response]';

const isStreamableFile = (value: object): value is { getStream(): Readable | undefined } =>
  'getStream' in value && typeof value.getStream === 'function' && 'getHeaders' in value;

/** The stream has ended, or has no source. A StreamableFile made of bytes has all of them in its buffer. */
function isComplete(stream: object | undefined): boolean {
  if (stream === undefined) return true;
  const { readableEnded, destroyed, _read } = stream as Partial<Readable>;
  return readableEnded === true || destroyed === true || _read === Readable.prototype._read;
}

/** Closes a result that no code will read, because it may hold a file or a connection open. */
function discard(late: object): void {
  const source = (isStreamableFile(late) ? late.getStream() : isResponse(late) ? late.body : late) as Source;
  source.on?.('error', () => undefined);
  const end = source.destroy ?? source.cancel ?? source.return;
  new Promise((resolve) => {
    resolve(end?.call(source));
  }).catch(() => undefined);
}
