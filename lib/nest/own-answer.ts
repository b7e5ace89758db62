import 'reflect-metadata';
import { RESPONSE_PASSTHROUGH_METADATA, ROUTE_ARGS_METADATA } from '@nestjs/common/constants.js';
import { RouteParamtypes } from '@nestjs/common/enums/route-paramtypes.enum.js';
import type { Type } from '@nestjs/common';
import { isPipedInto, isUnfinished } from '../core/late-result.js';

/** The parameters that a handler takes in order to answer by itself, as Nest sees it; empty where Nest answers. */
function ownAnswer(type: Type, property: string | symbol): RouteParamtypes[] {
  // For a method that a mixin has copied, the metadata is on the class where the method was declared.
  const hosts = [type, (type.prototype as object).constructor];
  for (const host of hosts) {
    const parameters: unknown = Reflect.getMetadata(ROUTE_ARGS_METADATA, host, property);
    const kinds = Object.keys(parameters ?? {}).map((key) => Number(key.split(':')[0]));
    const own = [RouteParamtypes.RESPONSE, RouteParamtypes.NEXT].filter((kind) => kinds.includes(kind));
    if (own.length > 0 && Reflect.getMetadata(RESPONSE_PASSTHROUGH_METADATA, host, property) !== true)
      return own;
  }
  return [];
}

/** Whether Nest leaves the answer to the handler, which injects the response or `next` without `passthrough`. */
export function answersByItself(type: Type, handler: object): boolean {
  for (let prototype = type.prototype as object | null; prototype !== null;) {
    const own = Object.entries(Object.getOwnPropertyDescriptors(prototype));
    const property = own.find(([, { value }]) => value === handler)?.[0];
    if (property !== undefined) return ownAnswer(type, property).length > 0;
    prototype = Object.getPrototypeOf(prototype) as object | null;
  }
  return false;
}

/** The response that a handler which answers by itself has been given, and has not finished. */
export function unfinishedResponse(
  type: Type,
  property: string | symbol,
  args: readonly unknown[],
): object | undefined {
  const own = ownAnswer(type, property);
  if (!own.includes(RouteParamtypes.RESPONSE)) return undefined;
  // `next` hands the request on to another handler, which answers when this one has ended.
  const isLate = own.includes(RouteParamtypes.NEXT) ? isPipedInto : isUnfinished;
  for (const argument of args) {
    if (isLate(argument)) return argument;
    // Fastify's reply has Node's response inside. Its hooks may delay what it has been given to send.
    const raw = (argument as { raw?: unknown } | null | undefined)?.raw;
    if (isPipedInto(raw)) return raw;
  }
  return undefined;
}
