import 'reflect-metadata';
import { type CallHandler, type ExecutionContext, Logger, type NestInterceptor } from '@nestjs/common';
import { INTERCEPTORS_METADATA } from '@nestjs/common/constants.js';
import { type MonoTypeOperatorFunction, type Observable, tap } from 'rxjs';
import { isLockAbortedError, isLockClosedError, isLockTimeoutError } from '../lock.errors.js';

/** Nest's marks of a handler of events. @nestjs/microservices is no dependency of this package. */
const HANDLER_TYPE_METADATA = 'microservices:handler_type';
const EVENT = 2;

const isEventHandler = (method: object): boolean =>
  Reflect.getMetadata(HANDLER_TYPE_METADATA, method) === EVENT;

const logger = new Logger('LockModule');
/** The error of an interceptor at the handler passes the one below, too. */
const logged = new WeakSet<object>();

/**
 * Logs an event that was not handled because of a lock. No client waits for an answer, and neither Nest nor
 * LockExceptionFilter logs a busy lock: the event would be lost without a trace. All other errors of locks are logged.
 */
export const logUnhandledEvent = <T>(context: ExecutionContext): MonoTypeOperatorFunction<T> =>
  tap<T>({
    error: (error: unknown) => {
      if (!isLockTimeoutError(error) && !isLockClosedError(error) && !isLockAbortedError(error)) return;
      const [type, handler] = [context.getClass(), context.getHandler()];
      if (!isEventHandler(handler) || logged.has(error)) return;
      logged.add(error);
      logger.warn(`${type.name}.${handler.name} has not handled its event: ${error.message}`);
    },
  });

/** Sees the errors of the handler. An interceptor of the class or of the application is outside of it. */
const unhandledEvents: NestInterceptor = {
  intercept: (context: ExecutionContext, next: CallHandler): Observable<unknown> =>
    next.handle().pipe(logUnhandledEvent(context)),
};

/** A controller inherits handlers of the classes above it. */
export function watchEventHandlers(metatype: unknown): void {
  let prototype: unknown = typeof metatype === 'function' ? metatype.prototype : undefined;
  while (typeof prototype === 'object' && prototype !== null) {
    for (const { value } of Object.values(Object.getOwnPropertyDescriptors(prototype))) watchHandler(value);
    prototype = Object.getPrototypeOf(prototype);
  }
}

function watchHandler(method: unknown): void {
  if (typeof method !== 'function' || !isEventHandler(method)) return;
  const interceptors = (Reflect.getMetadata(INTERCEPTORS_METADATA, method) ?? []) as unknown[];
  if (interceptors.includes(unhandledEvents)) return;
  Reflect.defineMetadata(INTERCEPTORS_METADATA, [unhandledEvents, ...interceptors], method);
}
