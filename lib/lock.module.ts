import { Module, type DynamicModule, type InjectionToken, type Provider } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import {
  DEFAULTS,
  type LockFactoryOptions,
  type LockModuleAsyncOptions,
  type LockModuleOptions,
  type LockOptionsFactory,
} from './lock.options.js';
import { assertAsyncOptions, assertOptionsFactory, resolveOptions } from './lock.options.validation.js';
import { connectService, LockService } from './lock.service.js';
import { getLockServiceToken, otherServiceClasses } from './nest/lock-service.token.js';
import { checkInjection } from './nest/service-property.js';

/**
 * Provides a LockService. Import it once per instance; by default every module of the application sees it. It connects
 * in the background once the modules are initialised, or with the first lock.
 */
@Module({})
export class LockModule {
  /** @throws LockConfigError when an option is wrong */
  static forRoot(options: LockModuleOptions): DynamicModule {
    resolveOptions(options);
    const provide = getLockServiceToken(options.name);
    return moduleOf(options, [{ provide, useFactory: () => new LockService(options) }]);
  }

  /**
   * As `forRoot`, with options that are known only at boot. Exactly one of `useFactory`, `useClass` and `useExisting`.
   * Wrong options fail the boot with LockConfigError.
   */
  static forRootAsync(options: LockModuleAsyncOptions): DynamicModule {
    assertAsyncOptions(options);
    const { name, imports = [], inject = [], useFactory, useClass, useExisting } = options;
    const provide = getLockServiceToken(name);
    const create = (made: LockFactoryOptions) =>
      new LockService(name === undefined ? made : { ...made, name });
    const createFrom = async (maker: LockOptionsFactory) => {
      assertOptionsFactory(maker);
      return create(await maker.createLockOptions());
    };

    const providers: Provider[] = [];
    if (useFactory !== undefined) {
      const factory = async (...dependencies: unknown[]) => create(await useFactory(...dependencies));
      providers.push({ provide, useFactory: factory, inject });
    }
    if (useClass !== undefined) {
      providers.push(useClass, { provide, useFactory: createFrom, inject: [useClass] });
    }
    if (useExisting !== undefined) providers.push({ provide, useFactory: createFrom, inject: [useExisting] });
    return { ...moduleOf(options, providers), imports };
  }
}

function moduleOf(
  { name, isGlobal = DEFAULTS.isGlobal }: Pick<LockModuleAsyncOptions, 'name' | 'isGlobal'>,
  providers: Provider[],
): DynamicModule {
  const token = getLockServiceToken(name);
  const others = name === undefined ? otherServiceClasses() : [];
  return {
    module: LockModule,
    global: isGlobal,
    providers: [
      ...providers,
      initializerOf(token, name),
      ...others.map((provide) => ({ provide, useExisting: token })),
    ],
    exports: [token, ...others],
  };
}

/**
 * What is to be done at boot when all has been loaded: a decorator that asks for what the service's store does not have
 * fails it. Once the modules are initialised the service connects, so that the first lock need not wait for that.
 */
const initializerOf = (token: InjectionToken<LockService>, name: string | undefined): Provider => ({
  provide: Symbol('initializer'),
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
