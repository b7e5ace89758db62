import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { isPromise } from 'node:util/types';
import { isObservable } from 'rxjs';
import { LockConfigError } from '../lock.errors.js';

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

/**
 * Collections are iterable, but they are not late: their elements already exist. A value inside of an object is not late
 * either: a caller may put it there on purpose.
 */
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

/** Whether Nest sends this after the handler's call has ended. Nest waits for a Promise, and sends its value. */
export const isSentLater = (value: unknown): boolean =>
  isUnfinished(value) || (lateResult(value) !== undefined && !isThenable(value));

/** When the work of a Promise is over. A thenable that is not a native Promise may begin its work only when it is asked. */
export async function settled(value: unknown): Promise<void> {
  if (isPromise(value)) await Promise.allSettled([value]);
}

/**
 * Refuses a result that would be read without the lock, in the same way as an Observable that nothing has announced.
 * @throws LockConfigError, and ends what has been refused: its reader never gets it, and it may hold a file open
 */
export function assertNotLate(value: unknown, title: string, cure: string): void {
  const late = lateResult(value);
  if (late === undefined) return;
  if (late === 'a response') assertFinished(value as object, title);
  if (late === 'a Promise') void settled(value);
  else discard(value as object);
  throw new LockConfigError(
    title,
    `has given ${late}, which is read when the call has ended and its lock is gone. ` +
      (late === 'a Promise' ? PROMISE_CURE : cure),
  );
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
export function assertNotHandedOut(value: unknown): void {
  assertNotLate(value, 'using', CALLBACK_CURE);
  // As above: no read of a property, because of deep mocks.
  if (typeof value !== 'object' || value === null || !('subscribe' in value) || !isObservable(value)) return;
  throw new LockConfigError(
    'using',
    `has given an Observable, which runs when the callback has ended and its lock is gone. ${CALLBACK_CURE}`,
  );
}

const CALLBACK_CURE =
  'Read it to its end in the callback; lastValueFrom and toArray do that with an Observable. ' +
  'Where its reader needs no lock, give it inside of an object';

const PROMISE_CURE =
  'Use mergeMap or concatMap in place of map, so that the Observable gives what the Promise does';

const RESPONSE_CURE =
  'Use LockInterceptor, which holds the lock until the response has been sent, or wait for its end in the call';

export const METHOD_CURE =
  'Read it to its end in the method, or return an Observable. Where it is the answer of an HTTP handler, ' +
  'use LockInterceptor, which holds the lock until the answer has been sent';

export const HANDLER_CURE = 'Read it to its end in the handler, or return an Observable of what it gives';

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
  Object.prototype.toString.call(value) === '[object Response]';

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
