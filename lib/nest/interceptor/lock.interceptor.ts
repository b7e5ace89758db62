import 'reflect-metadata';
import {
  BadRequestException,
  type CallHandler,
  type ExecutionContext,
  Inject,
  Injectable,
  type NestInterceptor,
  type Type,
} from '@nestjs/common';
import { SSE_METADATA } from '@nestjs/common/constants.js';
import type { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { finished } from 'node:stream';
import type { Observable } from 'rxjs';
import { onAbort } from '../../client/waiting/on-abort.js';
import type { LockKeyError } from '../../api/errors.js';
import type { CallOptions } from '../../api/options.js';
import type { LockService } from '../../module/lock-service.js';
import { isSentLater } from '../../client/holding/late-result.js';
import { stateOf } from '../../module/service-state.js';
import {
  assertOnlyName,
  assertWrittenLabel,
  assertWrittenName,
  CHECK_NAME,
} from '../decorator/class-names.js';
import { logUnhandledEvent } from '../decorator/event-handlers.js';
import { classTemplates, usesRoot } from '../key-template.js';
import { givenAtOnce } from '../decorator/method-options.js';
import { compileInterceptorOptions, type LockInterceptorOptions } from './lock-interceptor.options.js';
import { compileKey, labelOf, type LockKey } from '../lock-key.js';
import { decoratorToken } from '../service/lock-service.token.js';
import { lockObservable } from '../locked-call.js';
import { declaredReturn } from '../decorator/locked-method.js';
import { answersByItself, handlersOf, isLeftToHandler, nameOf } from './own-answer.js';
import { badMessage, FAULT, faultLog, keysOr } from '../filter/request-fault.js';
import { assertSupported } from '../service/supported-kind.js';

/** The names that a path of a key starts with. */
const ROOTS = ['req', 'args', 'class', 'method'];

/**
 * An interceptor that runs handlers under a lock: for `@UseInterceptors` on a handler or a controller, of any transport, or
 * for all handlers as `APP_INTERCEPTOR`. The lock is held until a value that is read later, such as a stream, has been
 * sent. If the handler answers by itself, because it injects the response or `next` without `passthrough`, the lock is
 * held until the response is finished.
 *
 * @param key as for {@link DistributedLock}, but paths start with `req` (the HTTP request: `req.params.id`), `args` (the
 *   handler's raw arguments: `args[0]` is a microservice's payload), `class` or `method`; a function gets the
 *   ExecutionContext.
 * @throws LockConfigError when it is made, if the key or an option is wrong
 */
export function LockInterceptor(
  key: LockKey<[context: ExecutionContext]>,
  options: LockInterceptorOptions | string | ((context: ExecutionContext) => CallOptions | string) = {},
): Type<NestInterceptor> {
  const { options: declared, onKeyError = keyErrors() } = compileInterceptorOptions(options, labelOf(key));
  const makeKeys = compileKey(key, ROOTS);
  const namesClass = usesRoot(key, 'class', ROOTS);
  const title = `LockInterceptor(${typeof key === 'function' ? '…' : JSON.stringify(key)})`;

  @Injectable()
  class MixinLockInterceptor implements NestInterceptor {
    /** The classes with their handlers whose name may stand in a key. */
    private readonly checked = new WeakMap<Type, Set<string>>();

    constructor(@Inject(decoratorToken(declared.instance)) private readonly service: LockService) {
      assertSupported(service, declared.kindWith(service), title);
    }

    /** Of a class whose handlers it locks. */
    [CHECK_NAME](type: Type): void {
      if (namesClass) assertWrittenName(type, title);
      if (namesClass)
        for (const method of handlersOf(type, MixinLockInterceptor)) this.assertName(type, method);
      if (typeof key === 'function' && !declared.isLabelled) assertWrittenLabel(type, title);
    }

    intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
      const [className, method] = [context.getClass().name, context.getHandler().name];
      const { service } = this;
      const answer = lockObservable(
        () => {
          if (stateOf(service)?.settings.enabled === false) return undefined;
          // One for the whole application is not known by the classes at boot.
          if (namesClass) this.assertName(context.getClass(), method);
          const args: unknown[] = context.getArgs();
          const roots = { req: requestOf(context), args, class: className, method };
          const isSoleAnswer =
            context.getType() === 'http' && isLeftToHandler(context.getClass(), context.getHandler());
          const options = declared.resolve(service, [context]);
          // The keys come last: an error after them would leave a Promise of keys whose rejection is not handled.
          const keys = keysOr(
            () => makeKeys({ roots, args: [context] }),
            (error) => givenAtOnce('onKeyError', onKeyError({ error, context })),
          );
          return { service, keys, options, title: `${className}.${method}`, isRequest: true, isSoleAnswer };
        },
        () => next.handle(),
        {
          onClientGone: (callback) => onClientGone(context, callback),
          sending: (value, lost) => (isSentLater(value) ? responseOver(context, lost) : undefined),
          answering: (lost) =>
            answersByItself(context.getClass(), context.getHandler())
              ? responseOver(context, lost)
              : undefined,
          isStream: () => isAnnounced(context),
        },
      );
      return answer.pipe(logUnhandledEvent(context));
    }

    private assertName(type: Type, method: string): void {
      const methods = this.checked.get(type) ?? new Set<string>();
      if (methods.has(method)) return;
      assertWrittenName(type, title);
      assertOnlyName(this.service, type, classTemplates(key, ROOTS, method), title);
      this.checked.set(type, methods.add(method));
    }
  }
  // Nest names the class if it cannot make one: the module that provides the service is missing.
  Object.defineProperty(MixinLockInterceptor, 'name', { value: title });
  return MixinLockInterceptor;
}

/** Whether the handler's return type is an Observable, or the handler is one of server-sent events. */
function isAnnounced(context: ExecutionContext): boolean {
  const [type, handler] = [context.getClass(), context.getHandler()];
  const property = nameOf(type, handler);
  if (property !== undefined && declaredReturn(type.prototype as object, property) === 'observable')
    return true;
  return Reflect.hasMetadata(SSE_METADATA, handler);
}

/** A value that a request lacks is no fault of the application. */
function keyErrors(): NonNullable<LockInterceptorOptions['onKeyError']> {
  const log = faultLog('LockInterceptor');
  return ({ error, context }) => {
    const handler = context.getHandler();
    log(error, handler, `${context.getClass().name}.${handler.name}`);
    return context.getType() === 'http' ? badRequest(error) : badMessage(error);
  };
}

const badRequest = (cause: LockKeyError): BadRequestException =>
  new BadRequestException(
    { statusCode: 400, error: 'Bad Request', message: FAULT, code: cause.code },
    { cause },
  );

/**
 * Settles when the HTTP response has been sent, or its client has gone; undefined outside of HTTP.
 * @param lost cuts the response off, so that the client does not take a part for the whole
 */
function responseOver(context: ExecutionContext, lost: AbortSignal | undefined): Promise<void> | undefined {
  const response = responseOf(context);
  if (response === undefined) return undefined;
  return new Promise((resolve) => {
    const ignoreLoss = lost && onAbort(lost, () => response.destroy());
    // With its default, `finished` also waits for the end of a readable side, which a response only seems to have. It never
    // comes after the end of the response, too, except with HTTP/1.
    finished(response, { readable: false }, () => {
      ignoreLoss?.();
      resolve();
    });
  });
}

/**
 * Calls back when the HTTP client goes away, at once if it has gone while a guard ran.
 * @returns a function that ends this
 */
function onClientGone(context: ExecutionContext, callback: () => void): () => void {
  const response = responseOf(context);
  if (response === undefined) return () => undefined;
  // Of pipelined requests, only the response that is being sent learns that its connection has closed.
  const { req: { socket } = {} } = response as Partial<ServerResponse>;
  const sources = isEmitter(socket) ? [response, socket] : [response];
  if (sources.some(({ destroyed }) => destroyed)) callback();
  const ends = sources.map((source) => onClose(source, callback));
  return () => {
    for (const end of ends) end();
  };
}

/** A request that comes without a connection, as on AWS Lambda, may have a plain object in its place. */
const isEmitter = <T extends object>(source: T | null | undefined): source is T =>
  typeof (source as Partial<EventEmitter> | null | undefined)?.once === 'function';

/** The callbacks of each connection or response that has a listener. */
const closing = new WeakMap<EventEmitter, Set<() => void>>();

/** A source has one listener: Node warns of a leak from eleven on, and a client may pipeline as many requests. */
function onClose(source: EventEmitter, callback: () => void): () => void {
  const callbacks = closing.get(source) ?? new Set();
  if (!closing.has(source)) {
    closing.set(source, callbacks);
    source.once('close', () => {
      for (const each of callbacks) each();
    });
  }
  callbacks.add(callback);
  return () => callbacks.delete(callback);
}

/** Node's response of an HTTP request. */
function responseOf(context: ExecutionContext): ServerResponse | undefined {
  if (context.getType() !== 'http') return undefined;
  // ExternalContextCreator calls handlers of a transport that it does not know HTTP, so this may be any value.
  const reply: unknown = context.switchToHttp().getResponse();
  // Fastify's reply has Node's response inside.
  const response = (reply as { raw?: ServerResponse } | null | undefined)?.raw ?? (reply as ServerResponse);
  // A test of the application may have a plain object in its place.
  return isEmitter(response) && 'destroy' in response ? response : undefined;
}

/** Of a request, a key also reads getters of its class. Undefined outside HTTP. */
const requestOf = (context: ExecutionContext): unknown =>
  context.getType() === 'http' ? context.switchToHttp().getRequest<unknown>() : undefined;
