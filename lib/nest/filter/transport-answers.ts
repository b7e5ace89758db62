import type { Provider } from '@nestjs/common';
import { EXCEPTION_FILTERS_METADATA } from '@nestjs/common/constants.js';
import { ApplicationConfig, HttpAdapterHost, ModulesContainer } from '../core-tokens.js';
import { watchEventHandlers } from '../decorator/event-handlers.js';
import { LockExceptionFilter } from './lock-exception.filter.js';

/** Nest's mark of a gateway. @nestjs/websockets is no dependency of this package. */
const GATEWAY_METADATA = 'websockets:is_gateway';

const bound = new WeakSet<ApplicationConfig>();

/**
 * Binds the filter after every filter of the application: Nest begins at the end of the list. This factory
 * runs before Nest makes the contexts of handlers, which copy that list.
 */
export const transportAnswers: Provider = {
  provide: Symbol('transport-answers'),
  inject: [ApplicationConfig, HttpAdapterHost, ModulesContainer],
  useFactory: (config: ApplicationConfig, adapterHost: HttpAdapterHost, modules: ModulesContainer) => {
    // One LockModule of the application is enough.
    if (bound.has(config)) return;
    bound.add(config);
    config.getGlobalFilters().unshift(new LockExceptionFilter(adapterHost));
    for (const { providers, controllers } of modules.values()) {
      for (const { metatype } of providers.values()) bindToGateway(metatype);
      for (const { metatype } of controllers.values()) watchEventHandlers(metatype);
    }
  },
};

/** Nest binds no global filter to a gateway. */
function bindToGateway(metatype: unknown): void {
  if (typeof metatype !== 'function' || !Reflect.hasMetadata(GATEWAY_METADATA, metatype)) return;
  const filters = (Reflect.getMetadata(EXCEPTION_FILTERS_METADATA, metatype) ?? []) as unknown[];
  if (filters.some((filter) => filter instanceof LockExceptionFilter)) return;
  Reflect.defineMetadata(EXCEPTION_FILTERS_METADATA, [new LockExceptionFilter(), ...filters], metatype);
}
