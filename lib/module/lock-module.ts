import { Module, type DynamicModule, type Provider } from '@nestjs/common';
import { ModulesContainer } from '../nest/core-tokens.js';
import { LockConfigError } from '../api/errors.js';
import { isLockConfigError } from '../api/error-guards.js';
import {
  type LockFactoryOptions,
  type LockModuleAsyncOptions,
  type LockModuleOptions,
  type LockOptionsFactory,
} from '../api/options.js';
import { DEFAULTS } from '../api/defaults.js';
import {
  assertAsyncOptions,
  assertFactoryOptions,
  assertOptionsFactory,
  resolveOptions,
} from './options-validation.js';
import { LockService } from './lock-service.js';
import { inQuotes } from '../runtime/text.js';
import { initializerOf } from '../nest/service/initializer.js';
import { getLockServiceToken, otherServiceClasses } from '../nest/service/lock-service.token.js';
import { assertMadeOnce, scopeCheckOf } from '../nest/service/request-scope.js';
import { transportAnswers } from '../nest/filter/transport-answers.js';

/**
 * Provides a LockService. Import it once per instance; by default every module of the application sees it. It connects in
 * the background once the modules are initialised, or with the first lock.
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
    const source = sourceOf(options);
    const create = (made: LockFactoryOptions) => {
      assertFactoryOptions(made, options);
      try {
        return new LockService(name === undefined ? made : { ...made, name });
      } catch (error) {
        throw isLockConfigError(error) ? givenBy(source, error) : error;
      }
    };
    const way = wayOf(options);
    const dependency = way === 'useFactory' ? 'inject' : way;
    const serviceOf = (
      maker: (...dependencies: never[]) => LockFactoryOptions | Promise<LockFactoryOptions>,
      dependencies: LockModuleAsyncOptions['inject'] = [],
    ): Provider => {
      const factory = async (modules: ModulesContainer, ...made: never[]): Promise<LockService> => {
        assertMadeOnce(modules, provide, factory, dependency);
        return create(await maker(...made));
      };
      return { provide, inject: [ModulesContainer, ...dependencies], useFactory: factory };
    };
    const createOptions = (maker: LockOptionsFactory) => {
      assertOptionsFactory(maker);
      return maker.createLockOptions();
    };

    const providers: Provider[] = [scopeCheckOf(provide, dependency)];
    if (useFactory !== undefined) providers.push(serviceOf(useFactory, inject));
    if (useClass !== undefined) providers.push(useClass, serviceOf(createOptions, [useClass]));
    if (useExisting !== undefined) providers.push(serviceOf(createOptions, [useExisting]));
    return { ...moduleOf(options, providers), imports };
  }
}

const wayOf = ({
  useFactory,
  useClass,
}: LockModuleAsyncOptions): 'useFactory' | 'useClass' | 'useExisting' => {
  if (useFactory !== undefined) return 'useFactory';
  return useClass === undefined ? 'useExisting' : 'useClass';
};

/** What gives the options, for the message of an error. */
function sourceOf(options: LockModuleAsyncOptions): string {
  const instance = options.name === undefined ? '' : ` "${inQuotes(options.name)}"`;
  return `${wayOf(options)} of LockModule.forRootAsync${instance}`;
}

/** The stack of an error at boot names Nest only. */
const givenBy = (source: string, error: LockConfigError): LockConfigError =>
  new LockConfigError(error.option, error.message.slice(`${error.option}: `.length), {
    key: error.key,
    source,
    cause: error,
  });

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
      transportAnswers,
      ...others.map((provide) => ({ provide, useExisting: token })),
    ],
    exports: [token, ...others],
  };
}
