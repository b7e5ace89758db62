import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { isMap, isPromise, isSet } from 'node:util/types';
import { isObservable } from 'rxjs';
import { LockConfigError } from '../../api/errors.js';

/**
 * A result that is read only after the call has ended, when the lock is free again. Two processes would produce its rows,
 * files or events at the same time.
 */
type LateResult =
  | 'an iterator'
  | 'an async iterator'
  | 'a stream'
  | 'a StreamableFile'
  | 'a Response'
  | 'a Promise'
  | 'a response';

/** Collections are iterable, but they are not late: their elements already exist. See `lateInside` for the elements. */
export function lateResult(value: unknown): LateResult | undefined {
  if (isThenable(value)) return 'a Promise';
  if (typeof value !== 'object' || value === null) return undefined;
  if (isStreamableFile(value)) return isComplete(value.getStream()) ? undefined : 'a StreamableFile';
  // What the response already has in memory cannot be told from what it still receives.
  if (isResponse(value)) return value.body && value.bodyUsed !== true ? 'a Response' : undefined;
  // Without a stream, it has been given back so that the caller goes on with it: `res.status(201)`.
  if (isPipedInto(value)) return 'a response';
  if (isStream(value)) return isComplete(value) ? undefined : 'a stream';
  // `in` and not a read of the property: the deep mocks of test libraries give a function for every name.
  if (Symbol.asyncIterator in value) return 'an async iterator';
  if (Symbol.iterator in value && 'next' in value && typeof value.next === 'function') return 'an iterator';
  return undefined;
}

/**
 * How many values of a collection are looked at. A list without `Promise.all` has a Promise in its first element, and the
 * event loop is not to be blocked by a result of a million rows.
 */
const LOOKED_AT = 1_000;

/** The values that a collection has: an array, a Map, a Set, or an object without a class. Of these only, and one level deep. */
function valuesOf(value: unknown): Iterable<unknown> {
  if (typeof value !== 'object' || value === null) return [];
  if (Array.isArray(value) || isSet(value)) return value;
  if (isMap(value)) return value.values();
  return isPlain(value) ? dataOf(value) : [];
}

/** No getter is called: it is code of the application, which nothing has called yet. */
function* dataOf(value: object): Generator {
  for (const key in value) yield Object.getOwnPropertyDescriptor(value, key)?.value;
}

/** Of any realm: its prototype has none. */
const isPlain = (value: object): boolean => {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
};

/** The first of the values of a collection that is late. */
function lateInside(value: unknown): LateResult | undefined {
  let looked = 0;
  for (const element of valuesOf(value)) {
    const late = lateResult(element);
    if (late !== undefined) return late;
    if (++looked === LOOKED_AT) return undefined;
  }
  return undefined;
}

/** Whether Nest sends this after the handler's call has ended. Nest waits for a Promise, and sends its value. */
export const isSentLater = (value: unknown): boolean =>
  isUnfinished(value) || (lateResult(value) !== undefined && !isThenable(value));

/**
 * When the work of a Promise is over, or of all Promises in a collection. A thenable that is not a native Promise may begin
 * its work only when it is asked.
 */
export async function settled(value: unknown): Promise<void> {
  await Promise.allSettled([value, ...valuesOf(value)].filter(isPromise));
}

/**
 * Refuses a result that would be read without the lock, in the same way as an Observable that nothing has announced.
 * @throws LockConfigError, and ends what has been refused: its reader never gets it, and it may hold a file open
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
 * The same for a result that nothing has got yet.
 * @returns undefined where it is not late; else what rejects when the Promises in it have settled, whose work has begun and
 *   needs the lock to its end
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
 * @throws LockConfigError, and cuts the response off
 */
export function assertFinished(unfinished: object | undefined, title: string): void {
  if (unfinished === undefined) return;
  discard(unfinished);
  throw new LockConfigError(
    title,
    `has left its response unfinished, whose rest is sent when the call has ended and its lock is gone. ${RESPONSE_CURE}`,
  );
}

/** The same for the result of the callback of `using`. Nothing else subscribes to an Observable that it returns. */
export function refusalOfHandedOut(value: unknown): Promise<never> | undefined {
  // As above: no read of a property, because of deep mocks.
  if (typeof value !== 'object' || value === null || !('subscribe' in value) || !isObservable(value))
    return refusalOf(value, 'using', CALLBACK_CURE);
  const rule = `has given an Observable, which runs when the callback has ended and its lock is gone. ${CALLBACK_CURE}`;
  return Promise.reject(new LockConfigError('using', rule));
}

const CALLBACK_CURE =
  'Read it to its end in the callback; lastValueFrom and toArray do that with an Observable. ' +
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

/** The methods of streams, Node's and the web's, and of iterators. */
type Source = Partial<Record<'on' | 'destroy' | 'cancel' | 'return', (...args: unknown[]) => unknown>>;

/** A response that is written to a client. */
const isOpenResponse = (value: unknown): value is ServerResponse => {
  if (typeof value !== 'object' || value === null || !('setHeader' in value)) return false;
  const { writableEnded, destroyed } = value as Partial<ServerResponse>;
  return writableEnded === false && destroyed !== true;
};

/** A stream that pipes into a response listens for its `unpipe` event. The responses of test libraries may be no emitters. */
export const isPipedInto = (value: unknown): value is ServerResponse =>
  isOpenResponse(value) && 'listenerCount' in value && value.listenerCount('unpipe') > 0;

/**
 * No answer has been sent, or a stream answers. Middleware that compresses, or saves a session, ends a response only some
 * time after it has been given all of it.
 */
export const isUnfinished = (value: unknown): value is ServerResponse =>
  isOpenResponse(value) && (!value.headersSent || isPipedInto(value));

/** A value that `await` waits for. */
export const isThenable = (value: unknown): boolean =>
  (typeof value === 'function' || (typeof value === 'object' && value !== null)) &&
  'then' in value &&
  typeof value.then === 'function';

const isStream = (value: object): boolean => ('pipe' in value && 'read' in value) || 'getReader' in value;

/** The web's Response, such as `fetch` returns. */
const isResponse = (value: object): value is { body?: object | null; bodyUsed?: boolean } =>
  'bodyUsed' in value && Object.prototype.toString.call(value) === '[object Response]';

const isStreamableFile = (value: object): value is { getStream(): Readable | undefined } =>
  'getStream' in value && typeof value.getStream === 'function' && 'getHeaders' in value;

/** The stream has ended, or has no source: a StreamableFile that is made of bytes has them all in its buffer. */
function isComplete(stream: object | undefined): boolean {
  if (stream === undefined) return true;
  const { readableEnded, destroyed, _read } = stream as Partial<Readable>;
  return readableEnded === true || destroyed === true || _read === Readable.prototype._read;
}

/** The result is never read, and may hold a file or a connection open. */
function discard(late: object): void {
  const source = (isStreamableFile(late) ? late.getStream() : isResponse(late) ? late.body : late) as Source;
  source.on?.('error', () => undefined);
  const end = source.destroy ?? source.cancel ?? source.return;
  new Promise((resolve) => {
    resolve(end?.call(source));
  }).catch(() => undefined);
}
