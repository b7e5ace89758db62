import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { isPromise } from 'node:util/types';
import { isObservable } from 'rxjs';
import { LockConfigError } from '../lock.errors.js';

/**
 * What a call may give that is read only after the call has ended, when the lock is free again: its rows, files or
 * events would be made by two processes at once.
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
 * Collections are not late, iterable though they are: what they hold is there already. Neither is what stands inside
 * of an object, where a caller may put it that means it.
 */
export function lateResult(value: unknown): LateResult | undefined {
  if (isThenable(value)) return 'a Promise';
  if (typeof value !== 'object' || value === null) return undefined;
  if (isStreamableFile(value)) return isComplete(value.getStream()) ? undefined : 'a StreamableFile';
  // What it has in memory already cannot be told from what it still gets.
  if (isResponse(value)) return value.body ? 'a Response' : undefined;
  if (isUnfinished(value)) return 'a response';
  if (isStream(value)) return isComplete(value) ? undefined : 'a stream';
  // `in` and not a look at the property: the deep mocks of test libraries give a function for every name.
  if (Symbol.asyncIterator in value) return 'an async iterator';
  if (Symbol.iterator in value && 'next' in value && typeof value.next === 'function') return 'an iterator';
  return undefined;
}

/** Whether Nest sends this after the handler's call has ended. For a Promise it waits, and sends what that gives. */
export const isSentLater = (value: unknown): boolean => lateResult(value) !== undefined && !isThenable(value);

/** When the work is over that a Promise stands for. One that is no Promise of JavaScript may begin only when it is asked. */
export async function settled(value: unknown): Promise<void> {
  if (isPromise(value)) await Promise.allSettled([value]);
}

/**
 * Refuses a result that would be read without the lock, as an Observable is refused that nothing has announced.
 * @throws LockConfigError, and ends what has been refused: its reader never gets it, and it may hold a file open
 */
export function assertNotLate(value: unknown, title: string, cure: string): void {
  const late = lateResult(value);
  if (late === undefined) return;
  if (late === 'a Promise') void settled(value);
  else discard(value as object);
  throw new LockConfigError(
    title,
    late === 'a response'
      ? `has left its response unfinished, whose rest is sent when the call has ended and its lock is gone. ${RESPONSE_CURE}`
      : `has given ${late}, which is read when the call has ended and its lock is gone. ` +
          (late === 'a Promise' ? PROMISE_CURE : cure),
  );
}

/** The same for what the callback of `using` gives, of which an Observable has no other to subscribe to it. */
export function assertNotHandedOut(value: unknown): void {
  assertNotLate(value, 'using', CALLBACK_CURE);
  // As above: not of a deep mock.
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
  'Use LockInterceptor, which holds the lock until the response has been sent, or wait for its end in the method';

export const METHOD_CURE =
  'Read it to its end in the method, or return an Observable. Where it is the answer of an HTTP handler, ' +
  'use LockInterceptor, which holds the lock until the answer has been sent';

export const HANDLER_CURE = 'Read it to its end in the handler, or return an Observable of what it gives';

/** What streams, Node's and the web's, and iterators have. */
type Source = Partial<Record<'on' | 'destroy' | 'cancel' | 'return', (...args: unknown[]) => unknown>>;

/** What is written to a client. */
const isOpenResponse = (value: unknown): value is ServerResponse => {
  if (typeof value !== 'object' || value === null || !('setHeader' in value)) return false;
  const { writableEnded, destroyed } = value as Partial<ServerResponse>;
  return writableEnded === false && destroyed !== true;
};

/** A stream that pipes listens for the end of that. */
export const isPipedInto = (value: unknown): value is ServerResponse =>
  isOpenResponse(value) && value.listenerCount('unpipe') > 0;

/**
 * Nothing has been answered, or a stream answers. Middleware that compresses, or saves a session, ends a response only
 * a while after it has been given all of it.
 */
export const isUnfinished = (value: unknown): value is ServerResponse =>
  isOpenResponse(value) && (!value.headersSent || isPipedInto(value));

/** What `await` waits for. */
const isThenable = (value: unknown): boolean =>
  (typeof value === 'function' || (typeof value === 'object' && value !== null)) &&
  'then' in value &&
  typeof value.then === 'function';

const isStream = (value: object): boolean => ('pipe' in value && 'read' in value) || 'getReader' in value;

/** The web's, such as `fetch` gives it. */
const isResponse = (value: object): value is { body?: object | null } =>
  Object.prototype.toString.call(value) === '[object Response]';

const isStreamableFile = (value: object): value is { getStream(): Readable | undefined } =>
  'getStream' in value && typeof value.getStream === 'function' && 'getHeaders' in value;

/** It has ended, or has no source: a StreamableFile that is made of bytes has them all in its buffer. */
function isComplete(stream: object | undefined): boolean {
  if (stream === undefined) return true;
  const { readableEnded, destroyed, _read } = stream as Partial<Readable>;
  return readableEnded === true || destroyed === true || _read === Readable.prototype._read;
}

/** It is never read, and may hold a file or a connection open. */
function discard(late: object): void {
  const source = (isStreamableFile(late) ? late.getStream() : isResponse(late) ? late.body : late) as Source;
  source.on?.('error', () => undefined);
  const end = source.destroy ?? source.cancel ?? source.return;
  new Promise((resolve) => {
    resolve(end?.call(source));
  }).catch(() => undefined);
}
