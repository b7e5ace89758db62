import 'reflect-metadata';
import {
  INTERCEPTORS_METADATA,
  REDIRECT_METADATA,
  RENDER_METADATA,
  RESPONSE_PASSTHROUGH_METADATA,
  ROUTE_ARGS_METADATA,
  SSE_METADATA,
} from '@nestjs/common/constants.js';
import { RouteParamtypes } from '@nestjs/common/enums/route-paramtypes.enum.js';
import type { Type } from '@nestjs/common';
import { isPipedInto, isUnfinished } from '../../client/holding/late-result.js';

/** Nest's record of a handler's parameters, whose keys are `<kind>:<index>`. */
type Parameters = Record<string, { readonly index: number }>;

const NEXT: number = RouteParamtypes.NEXT;
const OWN: readonly number[] = [RouteParamtypes.RESPONSE, NEXT];

/** How a handler's answer is sent, as Nest sees it. */
interface Answering {
  /**
   * The kinds of the parameters that a handler takes in order to answer by itself, and their positions among its arguments.
   * Empty if Nest answers.
   */
  readonly own: ReadonlyMap<number, number>;
  /** Nest answers with an event stream, a redirection or a page, also if the handler injects the response. */
  readonly isByNest: boolean;
}

const ANSWERS_OF_NEST = [SSE_METADATA, REDIRECT_METADATA, RENDER_METADATA];

/** Each call asks, and decorators have said all of it before the first one. */
const known = new WeakMap<Type, Map<string | symbol, Answering>>();

function answering(type: Type, property: string | symbol): Answering {
  const found = known.get(type)?.get(property);
  if (found !== undefined) return found;
  const handler = (type.prototype as Record<string | symbol, unknown>)[property];
  const isByNest =
    typeof handler === 'function' && ANSWERS_OF_NEST.some((key) => Reflect.hasMetadata(key, handler));
  const answer = { own: ownParameters(type, property), isByNest };
  const ofType = known.get(type) ?? new Map<string | symbol, Answering>();
  known.set(type, ofType.set(property, answer));
  return answer;
}

function ownParameters(type: Type, property: string | symbol): Map<number, number> {
  if (Reflect.getMetadata(RESPONSE_PASSTHROUGH_METADATA, type, property) === true) return new Map();
  const parameters = (Reflect.getMetadata(ROUTE_ARGS_METADATA, type, property) ?? {}) as Parameters;
  const kinds = Object.entries(parameters).map(([key, { index }]): [number, number] => [
    Number(key.split(':')[0]),
    index,
  ]);
  return new Map(kinds.filter(([kind]) => OWN.includes(kind)));
}

/** The name of a handler that Nest calls, among the methods of its class. */
export function nameOf(type: Type, handler: { readonly name: string }): string | undefined {
  for (let prototype = type.prototype as object | null; prototype !== null;) {
    const own = Object.entries(Object.getOwnPropertyDescriptors(prototype));
    const property = own.find(([, { value }]) => value === handler)?.[0];
    if (property !== undefined) return property;
    prototype = Object.getPrototypeOf(prototype) as object | null;
  }
  // Instrumentation, such as OpenTelemetry's, gives Nest a wrapper that has the name of the method.
  return handler.name in (type.prototype as object) ? handler.name : undefined;
}

/**
 * Whether Nest leaves the answer to the handler, which injects the response or `next` without `passthrough`. True for a
 * handler that is not found in its class: a response that Nest sends is finished too.
 */
export function answersByItself(type: Type, handler: { readonly name: string }): boolean {
  const property = nameOf(type, handler);
  return property === undefined || answering(type, property).own.size > 0;
}

/** Whether Nest sends nothing for a handler, neither its result nor a replacement for it. */
export function isLeftToHandler(type: Type, handler: { readonly name: string }): boolean {
  const property = nameOf(type, handler);
  if (property === undefined) return false;
  const { own, isByNest } = answering(type, property);
  return own.size > 0 && !isByNest;
}

/** The same for a call with these arguments: the parameters of a GraphQL resolver are recorded under the same numbers. */
export function isLeftToCall(type: Type, property: string | symbol, args: readonly unknown[]): boolean {
  const { own, isByNest } = answering(type, property);
  if (isByNest || own.size === 0) return false;
  return [...own].some(([kind, index]) => {
    const argument = args[index];
    if (kind === NEXT) return typeof argument === 'function';
    return (
      typeof argument === 'object' && argument !== null && ('setHeader' in argument || 'raw' in argument)
    );
  });
}

/**
 * Begins a call of a handler. `next` among its arguments is replaced by a function that notes its call.
 * @returns a function for the end of the call: it gives the unfinished response of a handler that answers by itself;
 *   undefined if Nest answers
 */
export function watchAnswer(
  type: Type,
  property: string | symbol,
  args: unknown[],
): (() => object | undefined) | undefined {
  const { own, isByNest } = answering(type, property);
  if (isByNest || !own.has(RouteParamtypes.RESPONSE)) return undefined;
  let isHandedOn = false;
  const index = own.get(NEXT) ?? -1;
  const next = args[index] as ((...given: unknown[]) => unknown) | undefined;
  if (typeof next === 'function') {
    args[index] = (...given: unknown[]) => {
      isHandedOn = true;
      return next(...given);
    };
  }
  return () => {
    // `next` hands the request on to another handler, which answers when this one has ended.
    const isLate = isHandedOn ? isPipedInto : isUnfinished;
    for (const argument of args) {
      if (isLate(argument)) return argument;
      // Fastify's reply has Node's response inside. Its hooks may delay the answer.
      const raw = (argument as { raw?: unknown } | null | undefined)?.raw;
      if (isPipedInto(raw)) return raw;
    }
    return undefined;
  };
}

/** The handlers of a class that have this interceptor, by themselves or by their class: methods with a decorator of Nest. */
export function handlersOf(type: Type, interceptor: Type): string[] {
  const has = (target: object) =>
    ((Reflect.getMetadata(INTERCEPTORS_METADATA, target) ?? []) as unknown[]).includes(interceptor);
  const isOfClass = has(type);
  const found = new Set<string>();
  for (
    let at = type.prototype as object | null;
    at !== null;
    at = Object.getPrototypeOf(at) as object | null
  ) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(at))) {
      const method: unknown = value;
      if (typeof method !== 'function' || Reflect.getMetadataKeys(method).length === 0) continue;
      if (isOfClass || has(method)) found.add(name);
    }
  }
  return [...found];
}
