import type { ModulesContainer } from '@nestjs/core';

/** Nest's mark of a field resolver, and its token of GraphQL options. @nestjs/graphql is no dependency of this package. */
const FIELD_METADATA = 'graphql:resolve_property';
const OPTIONS_TOKEN = 'GqlModuleOptions';

/**
 * A field resolver of an application that runs no filters for these: the message of a LockTimeoutError, which names the lock
 * and its holder, would reach clients.
 * @returns its class and method; undefined if there is none
 */
export function unfilteredFieldResolver(modules: ModulesContainer): string | undefined {
  const providers = [...modules.values()].flatMap((module) => [...module.providers.entries()]);
  const options = providers.filter(([token]) => token === OPTIONS_TOKEN);
  const isUnfiltered = options.some(([, { instance }]) => {
    const { fieldResolverEnhancers } = (instance ?? {}) as { fieldResolverEnhancers?: unknown };
    return !Array.isArray(fieldResolverEnhancers) || !fieldResolverEnhancers.includes('filters');
  });
  if (!isUnfiltered) return undefined;
  for (const [, { metatype }] of providers) {
    const method = typeof metatype === 'function' ? fieldResolverOf(metatype.prototype) : undefined;
    if (method !== undefined) return `${metatype?.name ?? ''}.${method}`;
  }
  return undefined;
}

function fieldResolverOf(prototype: unknown): string | undefined {
  if (typeof prototype !== 'object' || prototype === null) return undefined;
  return Object.getOwnPropertyNames(prototype).find((name) => {
    const method: unknown = Object.getOwnPropertyDescriptor(prototype, name)?.value;
    return typeof method === 'function' && Reflect.hasMetadata(FIELD_METADATA, method);
  });
}
