import type { DynamicModule, InjectionToken, Provider } from '@nestjs/common';
import { ModulesContainer } from '../core-tokens.js';
import { LockClosedError, LockConfigError } from '../../api/errors.js';
import { fieldResolverWarning } from '../../module/options-warnings.js';
import { inQuotes } from '../../runtime/text.js';
import type { LockService } from '../../module/lock-service.js';
import { stateOf } from '../../module/service-state.js';
import { assertAccepted } from '../interceptor/accepted.js';
import { checkNames } from '../decorator/class-names.js';
import { campaignsOf } from '../election/campaigns.js';
import { addLeaderMethods } from '../election/leader-method.js';
import { unfilteredFieldResolver } from '../interceptor/field-resolvers.js';
import { endAfterLastHook } from './last-hooks.js';
import { checkInjection } from './service-property.js';

let made = 0;
const MARK = 'nestjs-distributed-lock initializer ';

/**
 * The work at boot when all modules are loaded. A decorator that needs a feature which the service's store does not have
 * fails the boot, and so does a store that refuses the service. Once the modules are initialised the service connects, so that the first lock need not wait for that.
 *
 * Its token is numbered. Nest may compare modules by their source text (`deep-hash`), and would take two modules for one
 * when their factories differ only in the options that they close over.
 */
export const initializerOf = (token: InjectionToken<LockService>, name: string | undefined): Provider => ({
  provide: Symbol(MARK + String(++made)),
  inject: [token, ModulesContainer],
  useFactory: bootOf(name, token),
});

const bootOf =
  (name: string | undefined, token: InjectionToken<LockService>) =>
  (service: LockService, modules: ModulesContainer) => {
    const ending = new AbortController();
    endAfterLastHook(service, modules);
    return {
      onModuleInit: async () => {
        const all = [...modules.values()];
        const providing = all.filter(({ providers }) => providers.has(token));
        assertOneGlobal(providing, all, name);
        for (const module of all) assertOneImported(module, providing, name);
        for (const { providers, controllers } of all) {
          for (const wrapper of [...providers.values(), ...controllers.values()]) {
            checkNames(wrapper.metatype, wrapper.getEnhancersMetadata());
          }
        }
        // If several modules provide one, Nest decides which class gets which.
        if (providing.length === 1) {
          for (const { providers, controllers } of all) {
            for (const { metatype } of [...providers.values(), ...controllers.values()]) {
              checkInjection(metatype, name, service);
            }
          }
        }
        addLeaderMethods(modules, service);
        await assertAccepted(service);
      },
      onApplicationBootstrap: () => {
        // A double of the service has no state. If decorators take no locks, the store may not be there.
        const state = stateOf(service);
        if (state === undefined) return;
        if (!state.settings.enabled) {
          campaignsOf(service).lead(ending.signal);
          return;
        }
        const resolver = unfilteredFieldResolver(modules);
        if (resolver !== undefined) state.warn(fieldResolverWarning(resolver));
        for (const warning of state.bootWarnings.values()) state.warn(warning);
        state.connect();
        campaignsOf(service).start();
      },
      beforeApplicationShutdown: () => {
        ending.abort(new LockClosedError());
      },
    };
  };

type Module = ModulesContainer extends Map<string, infer M> ? M : never;

/** @throws LockConfigError if two services have one name, and every injection would get the one that Nest finds first */
function assertOneGlobal(
  providing: readonly Module[],
  all: readonly Module[],
  name: string | undefined,
): void {
  const everywhere = [
    ...new Set(all.filter(({ isGlobal }) => isGlobal).flatMap((module) => offeredBy(module, providing))),
  ];
  if (everywhere.length < 2) return;
  const importers = everywhere.flatMap((provider) => importersOf(provider, all));
  throw new LockConfigError(
    'name',
    `${String(everywhere.length)} services ${titleOf(name)} are provided for every module, and only one of them would be injected ` +
      `(imported by ${importers.join(' and ')}); import LockModule once, give the others a name, or set isGlobal: ` +
      'false if each module has a service of its own',
  );
}

/** The modules whose service a module gives to its importers: its own, and those that it exports again. */
function offeredBy(
  module: Module,
  providing: readonly Module[],
  passed = new Set<Module>(),
): readonly Module[] {
  if (providing.includes(module)) return [module];
  if (passed.has(module)) return [];
  passed.add(module);
  const exported = [...module.imports].filter(({ metatype }) => module.exports.has(metatype));
  return exported.flatMap((imported) => offeredBy(imported, providing, passed));
}

/** @throws LockConfigError if a module imports two services of one name for itself, and would get one of them */
function assertOneImported(module: Module, providing: readonly Module[], name: string | undefined): void {
  const imported = providing.filter((provider) => !provider.isGlobal && module.imports.has(provider));
  if (imported.length < 2) return;
  throw new LockConfigError(
    'name',
    `${module.metatype.name} imports ${String(imported.length)} services ${titleOf(name)}, and only one of them would be ` +
      'injected; import LockModule once in each module, or give the others a name',
  );
}

const titleOf = (name: string | undefined): string =>
  name === undefined ? 'without a name' : `named "${inQuotes(name)}"`;

/** The classes that import it by their decorator. `imports` of a module has every global module, imported or not. */
function importersOf(provider: Module, all: readonly Module[]): string[] {
  const token = [...provider.providers.keys()].find(
    (key) => typeof key === 'symbol' && key.description?.startsWith(MARK) === true,
  );
  const isIt = (imported: unknown) =>
    ((imported as Partial<DynamicModule> | undefined)?.providers ?? []).some(
      (given) => 'provide' in given && given.provide === token,
    );
  const importing = all.filter(({ metatype }) => {
    const imports: unknown = Reflect.getMetadata('imports', metatype);
    return Array.isArray(imports) && imports.some(isIt);
  });
  return importing.length === 0 ? ['a dynamic module'] : importing.map(({ metatype }) => metatype.name);
}
