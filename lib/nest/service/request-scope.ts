import { type InjectionToken, type Provider, Scope } from '@nestjs/common';
import { ModulesContainer } from '../core-tokens.js';
import { LockConfigError } from '../../api/errors.js';
import { inQuotes } from '../../runtime/text.js';

type Module = ModulesContainer extends Map<string, infer M> ? M : never;
type Wrapper = Module['providers'] extends Map<unknown, infer W> ? W : never;

let made = 0;

/**
 * Refuses, at boot, options that depend on a request, also over other providers: Nest would make one service for each request,
 * or for each tenant of a durable provider, each with connections of its own, and would call none of its hooks.
 *
 * Its token is numbered for the reason that initializerOf gives. Nest calls no hook of a provider that depends on a request,
 * so this one does not depend on the service.
 */
export const scopeCheckOf = (token: InjectionToken, option: string): Provider => ({
  provide: Symbol(`nestjs-distributed-lock:scope-check-${String(++made)}`),
  inject: [ModulesContainer],
  useFactory: (modules: ModulesContainer) => ({
    onModuleInit: () => {
      for (const { providers } of modules.values()) assertNotPerRequest(providers.get(token), option);
    },
  }),
});

/**
 * As scopeCheckOf, for a service that is about to be made: Nest calls no hook at the boot of a module that is loaded lazily.
 * Only the dependencies of this service are known then.
 * @param factory that makes it
 */
export function assertMadeOnce(
  modules: ModulesContainer,
  token: InjectionToken,
  factory: object,
  option: string,
): void {
  for (const { providers } of modules.values()) {
    const wrapper = providers.get(token);
    if (wrapper?.metatype === factory) assertNotPerRequest(wrapper, option);
  }
}

function assertNotPerRequest(wrapper: Wrapper | undefined, option: string): void {
  const path = requestPath(wrapper);
  if (path !== undefined) throw perRequest(option, path);
}

function perRequest(option: string, path: readonly Wrapper[]): LockConfigError {
  const titles = path.slice(1).map(({ name, token }) => titleOf(name ?? token));
  const [first = ''] = titles;
  const way = titles.length > 1 ? ` (${titles.join(' → ')})` : '';
  return new LockConfigError(
    option,
    `must not depend on a request: ${first} is request-scoped${way}, so each request would get a LockService and connections ` +
      'of its own, which no shutdown closes. Make the provider a singleton (Scope.DEFAULT), and read what differs between ' +
      'requests when a lock is acquired: in its name, or in the choice of a named instance',
  );
}

/** From the provider to the one that depends on a request by itself; undefined if there is none. */
function requestPath(
  wrapper: Wrapper | undefined,
  before: readonly Wrapper[] = [],
): readonly Wrapper[] | undefined {
  if (wrapper === undefined || before.includes(wrapper) || wrapper.isDependencyTreeStatic()) return undefined;
  const path = [...before, wrapper];
  if (wrapper.scope === Scope.REQUEST) return path;
  // Nest leaves both undefined if there are none.
  const parameters = (wrapper.getCtorMetadata() as Wrapper[] | undefined) ?? [];
  const properties = (wrapper.getPropertiesMetadata() as { wrapper: Wrapper }[] | undefined) ?? [];
  for (const dependency of [...parameters, ...properties.map(({ wrapper: injected }) => injected)]) {
    const found = requestPath(dependency, path);
    if (found !== undefined) return found;
  }
  return undefined;
}

const titleOf = (token: unknown): string =>
  typeof token === 'function'
    ? token.name
    : inQuotes(typeof token === 'symbol' ? String(token) : (token as string));
