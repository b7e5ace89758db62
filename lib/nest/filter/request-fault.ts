import 'reflect-metadata';
import { Logger, type Type } from '@nestjs/common';
import { PATH_METADATA, ROUTE_ARGS_METADATA } from '@nestjs/common/constants.js';
import { LockKeyError } from '../../api/errors.js';
import { isLockKeyError } from '../../api/error-guards.js';
import { HANDLER_TYPE_METADATA, isEventHandler } from '../decorator/event-handlers.js';

export const FAULT = 'The request lacks a value that it needs, or has one that cannot be used';

/** For LockExceptionFilter. Outside of HTTP, an HttpException tells a client nothing. */
export const badMessage = (cause: LockKeyError): LockKeyError =>
  new LockKeyError(cause.message, cause.key, cause, { status: 400, publicMessage: FAULT });

/** A wrong template would be a fault of the application, so the first refusal of each handler is logged. */
export function faultLog(context: string): (error: LockKeyError, handler: object, title: string) => void {
  const logger = new Logger(context);
  const logged = new WeakSet<object>();
  return (error, handler, title) => {
    if (logged.has(handler)) return;
    logged.add(handler);
    logger.warn(`${title} has answered 400: ${error.message}`);
  };
}

/** Makes the keys of a call. An error that says they cannot be used goes through `refuse`. */
export function keysOr(
  make: () => string[] | Promise<string[]>,
  refuse: (error: LockKeyError) => unknown,
): string[] | Promise<string[]> {
  const refused = (error: unknown): never => {
    throw isLockKeyError(error) ? refuse(error) : error;
  };
  try {
    const keys = make();
    return Array.isArray(keys) ? keys : keys.catch(refused);
  } catch (error) {
    return refused(error);
  }
}

/** A call of a decorated method. */
interface DecoratedCall {
  readonly type: Type;
  readonly property: string | symbol;
  readonly title: string;
}

/** The error of a call whose key is made of its arguments: the arguments of a handler come from a request. */
export function handlerFaults(context: string): (error: LockKeyError, call: DecoratedCall) => LockKeyError {
  const log = faultLog(context);
  return (error, { type, property, title }) => {
    const handler = requestHandlerOf(type, property);
    if (handler === undefined) return error;
    log(error, handler, title);
    return badMessage(error);
  };
}

/** The method, if it is a handler whose client waits for an answer. Its arguments come from a request. */
function requestHandlerOf(type: Type, property: string | symbol): object | undefined {
  const handler = (type.prototype as Record<string | symbol, unknown>)[property];
  if (typeof handler !== 'function' || isEventHandler(handler)) return undefined;
  const isHandler =
    Reflect.hasMetadata(PATH_METADATA, handler) ||
    Reflect.hasMetadata(HANDLER_TYPE_METADATA, handler) ||
    Reflect.hasMetadata(ROUTE_ARGS_METADATA, type, property);
  return isHandler ? handler : undefined;
}
