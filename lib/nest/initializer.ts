import type { InjectionToken, Provider } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { connectService, type LockService } from '../lock.service.js';
import { checkInjection } from './service-property.js';

let made = 0;

/**
 * What is to be done at boot when all has been loaded: a decorator that asks for what the service's store does not have
 * fails it. Once the modules are initialised the service connects, so that the first lock need not wait for that.
 *
 * Its token is numbered: Nest may compare modules by what is written in them (`deep-hash`), and would take two whose
 * factories close over other options for one.
 */
export const initializerOf = (token: InjectionToken<LockService>, name: string | undefined): Provider => ({
  provide: Symbol(`initializer ${String(++made)}`),
  inject: [token, ModulesContainer],
  useFactory: (service: LockService, modules: ModulesContainer) => ({
    onModuleInit: () => {
      const all = [...modules.values()];
      // Where several modules provide one, it is for Nest to say which class gets which.
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
