import { ModulesContainer } from '../core-tokens.js';
import { LockClosedError } from '../../api/errors.js';
import { closeInHook, endedSoon } from '../../module/close-in-hook.js';
import { sleep } from '../../runtime/runtime.js';
import type { LockService } from '../../module/lock-service.js';
import { stateOf } from '../../module/service-state.js';

/** The services of each application, of all copies of this package: they close together. */
const SERVICES = Symbol.for('nestjs-distributed-lock.services-of-applications');
type OfApplications = WeakMap<ModulesContainer, LockService[]>;
const shared = globalThis as { [SERVICES]?: OfApplications | undefined };
const ofApplications: OfApplications = (shared[SERVICES] ??= new WeakMap());

/**
 * Ends a service after the last hook of its application. Until then the hooks of other modules, in an order that depends
 * on the imports, end the users of the locks: consumers start work until their own hook has run, and finish it.
 *
 * The module of Nest that provides ModulesContainer is the first one of each application and is global, so Nest calls its
 * hooks at last. Nest knows it from the boot on, and calls no hook of a module that is loaded lazily.
 * @throws LockClosedError for a module that is loaded lazily after the last hook: nothing would ever end its service. It is not
 *   noticed for the first LockModule of an application
 */
export function endAfterLastHook(service: LockService, modules: ModulesContainer): void {
  const state = stateOf(service);
  if (state === undefined) return; // a double, which Nest ends by its own hooks
  state.closesLast = true;
  const services = ofApplications.get(modules);
  if (services !== undefined) {
    if (Object.isFrozen(services)) {
      void service.close().catch(() => undefined);
      throw new LockClosedError();
    }
    services.push(service);
    return;
  }
  ofApplications.set(modules, [service]);
  const last = [...modules.values()].find((module) => module.exports.has(ModulesContainer));
  last?.addProvider({
    provide: Symbol('nestjs-distributed-lock:last-hooks'),
    useValue: lastHooks(ofApplications.get(modules) ?? []),
  });
}

const lastHooks = (services: readonly LockService[]) => {
  const states = () => services.flatMap((service) => stateOf(service) ?? []);
  return {
    // Nest calls the next hook of this module only after those of consumers, which may wait for their work in it.
    onModuleDestroy: (): void => {
      for (const service of services) service.beforeApplicationShutdown();
    },
    // Before the application closes the resources that the work of a term needs.
    beforeApplicationShutdown: async (): Promise<void> => {
      // Work that only a later hook ends is not waited for.
      await endedSoon(Promise.all(states().map((state) => state.endTerms())));
    },
    onApplicationShutdown: async (): Promise<void> => {
      Object.freeze(services);
      // A hook may have waited for work inside of a callback, which then has still to end and to give its lock back.
      await sleep(0);
      await closeInHook(states());
    },
  };
};
