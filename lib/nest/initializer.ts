import type { InjectionToken, Provider } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { connectService, type LockService } from '../lock.service.js';
import { checkInjection } from './service-property.js';

let made = 0;

/**
 * The work at boot when all modules are loaded. A decorator that needs a feature which the service's store does not have
 * fails the boot. Once the modules are initialised the service connects, so that the first lock need not wait for that.
 *
 * Its token is numbered. Nest may compare modules by their source text (`deep-hash`), and would take two modules for one
 * when their factories differ only in the options that they close over.
 */
export const initializerOf = (token: InjectionToken<LockService>, name: string | undefined): Provider => ({
  provide: Symbol(`initializer ${String(++made)}`),
  inject: [token, ModulesContainer],
  useFactory: (service: LockService, modules: ModulesContainer) => ({
    onModuleInit: () => {
      const all = [...modules.values()];
      // Where several modules provide one, Nest decides which class gets which.
      if (all.filter(({ providers }) => providers.has(token)).length === 1) {
        for (const { providers, controllers } of all) {
          for (const { metatype } of [...providers.values(), ...controllers.values()]) {
            checkInjection(metatype, name, service);
          }
        }
      }
    },
    onApplicationBootstrap: () => {
      connectService(service);
    },
  }),
});
