import 'reflect-metadata';
import { type CallHandler, type ExecutionContext, Logger, type NestInterceptor } from '@nestjs/common';
import { INTERCEPTORS_METADATA } from '@nestjs/common/constants.js';
import { type Observable, tap } from 'rxjs';
import { isLockAbortedError, isLockClosedError, isLockTimeoutError } from '../lock.errors.js';

/** Nest's marks of a handler of events. @nestjs/microservices is no dependency of this package. */
const HANDLER_TYPE_METADATA = 'microservices:handler_type';
const EVENT = 2;

/**
 * Logs the events that were not handled because of a lock. No client waits for an answer, and neither Nest nor
 * LockExceptionFilter logs a busy lock: the event would be lost without a trace. All other errors of locks are logged.
 */
const unhandledEvents: NestInterceptor = {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const error = (error: unknown) => {
      if (!isLockTimeoutError(error) && !isLockClosedError(error) && !isLockAbortedError(error)) return;
      const handler = `${context.getClass().name}.${context.getHandler().name}`;
      logger.warn(`${handler} has not handled its event: ${error.message}`);
    };
    return next.handle().pipe(tap({ error }));
  },
};

const logger = new Logger('LockModule');

/** A controller inherits handlers of the classes above it. */
export function watchEventHandlers(metatype: unknown): void {
  let prototype: unknown = typeof metatype === 'function' ? metatype.prototype : undefined;
  while (typeof prototype === 'object' && prototype !== null) {
    for (const { value } of Object.values(Object.getOwnPropertyDescriptors(prototype))) watchHandler(value);
    prototype = Object.getPrototypeOf(prototype);
  }
}

function watchHandler(method: unknown): void {
  if (typeof method !== 'function' || Reflect.getMetadata(HANDLER_TYPE_METADATA, method) !== EVENT) return;
  const interceptors = (Reflect.getMetadata(INTERCEPTORS_METADATA, method) ?? []) as unknown[];
  if (interceptors.includes(unhandledEvents)) return;
  Reflect.defineMetadata(INTERCEPTORS_METADATA, [unhandledEvents, ...interceptors], method);
}
