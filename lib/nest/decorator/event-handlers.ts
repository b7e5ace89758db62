import 'reflect-metadata';
import { type ExecutionContext, Logger } from '@nestjs/common';
import { isObservable, type MonoTypeOperatorFunction, tap } from 'rxjs';
import { isLockAbortedError, isLockClosedError, isLockTimeoutError } from '../../api/error-guards.js';
import { copyMetadata } from './copy-metadata.js';

/** Nest's marks of a handler of events. @nestjs/microservices is no dependency of this package. */
export const HANDLER_TYPE_METADATA = 'microservices:handler_type';
const EVENT = 2;

export const isEventHandler = (method: object): boolean =>
  Reflect.getMetadata(HANDLER_TYPE_METADATA, method) === EVENT;

const logger = new Logger('LockModule');
/** An error passes the handler and the interceptor around it. */
const logged = new WeakSet<object>();

/**
 * Logs an event that was not handled because of a lock. No client waits for an answer, and neither Nest nor
 * LockExceptionFilter logs a busy lock: the event would be lost without a trace. All other errors of locks are logged.
 */
function logUnhandled(error: unknown, title: string): void {
  if (!isLockTimeoutError(error) && !isLockClosedError(error) && !isLockAbortedError(error)) return;
  if (logged.has(error)) return;
  logged.add(error);
  logger.warn(`${title} has not handled its event: ${error.message}`);
}

/** For the stream of an interceptor, which is outside of the handler. */
export const logUnhandledEvent = <T>(context: ExecutionContext): MonoTypeOperatorFunction<T> =>
  tap<T>({
    error: (error: unknown) => {
      const handler = context.getHandler();
      if (!isEventHandler(handler) || context.getType() !== 'rpc') return;
      logUnhandled(error, `${context.getClass().name}.${handler.name}`);
    },
  });

const watched = new WeakSet<object>();

/** Watches the handlers of a controller, and those of the classes above it. */
export function watchEventHandlers(metatype: unknown): void {
  let prototype: unknown = typeof metatype === 'function' ? metatype.prototype : undefined;
  while (typeof prototype === 'object' && prototype !== null) {
    for (const [name, descriptor] of Object.entries(Object.getOwnPropertyDescriptors(prototype))) {
      const method: unknown = descriptor.value;
      if (typeof method !== 'function' || !isEventHandler(method) || watched.has(method)) continue;
      const value = watchedHandler(method as Handler);
      watched.add(value);
      Object.defineProperty(prototype, name, { ...descriptor, value });
    }
    prototype = Object.getPrototypeOf(prototype);
  }
}

type Handler = (...args: unknown[]) => unknown;

/**
 * No interceptor: under one Nest would give a transport an Observable, in place of the Promise by which it sees when the
 * event has been handled.
 */
function watchedHandler(handler: Handler): Handler {
  const watching = function (this: object, ...args: unknown[]): unknown {
    const log = (error: unknown) => {
      logUnhandled(error, `${this.constructor.name}.${handler.name}`);
    };
    const result = handler.apply(this, args);
    if (result instanceof Promise) void result.then(undefined, log);
    return isObservable(result) ? result.pipe(tap({ error: log })) : result;
  };
  copyMetadata(handler, watching);
  return watching;
}
