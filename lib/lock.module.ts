import { Module, type DynamicModule, type Provider } from '@nestjs/common';
import { LockConfigError } from './lock.errors.js';
import {
  DEFAULTS,
  type LockFactoryOptions,
  type LockModuleAsyncOptions,
  type LockModuleOptions,
  type LockOptionsFactory,
} from './lock.options.js';
import { assertInstanceName, resolveOptions } from './lock.options.validation.js';
import { LockService } from './lock.service.js';
import { getLockServiceToken } from './nest/lock-service.token.js';

/** Provides a LockService. Import it once per instance; by default every module of the application sees it. */
@Module({})
export class LockModule {
  /** @throws LockConfigError when an option is wrong */
  static forRoot(options: LockModuleOptions): DynamicModule {
    resolveOptions(options);
    const provide = getLockServiceToken(options.name);
    return moduleOf(options, { provide, useFactory: () => new LockService(options) });
  }

  /**
   * As `forRoot`, with options that are known only at boot. Exactly one of `useFactory`, `useClass` and `useExisting`.
   * Wrong options fail the boot with LockConfigError.
   */
  static forRootAsync(options: LockModuleAsyncOptions): DynamicModule {
    const { name, imports = [], inject = [], useFactory, useClass, useExisting } = options;
    assertInstanceName(name);
    if ([useFactory, useClass, useExisting].filter((way) => way !== undefined).length !== 1) {
      throw new LockConfigError(
        'useFactory / useClass / useExisting',
        'forRootAsync takes exactly one of them',
      );
    }
    const provide = getLockServiceToken(name);
    const create = (made: LockFactoryOptions) =>
      new LockService(name === undefined ? made : { ...made, name });
    if (useFactory !== undefined) {
      const factory = async (...dependencies: unknown[]) => create(await useFactory(...dependencies));
      return { ...moduleOf(options, { provide, useFactory: factory, inject }), imports };
    }
    const source = useClass ?? (useExisting as NonNullable<typeof useExisting>);
    const factory = async (maker: LockOptionsFactory) => create(await maker.createLockOptions());
    const module = moduleOf(options, { provide, useFactory: factory, inject: [source] });
    const own: Provider[] = useClass === undefined ? [] : [useClass];
    return { ...module, imports, providers: [...(module.providers ?? []), ...own] };
  }
}

function moduleOf(
  { name, isGlobal = DEFAULTS.isGlobal }: Pick<LockModuleAsyncOptions, 'name' | 'isGlobal'>,
  service: Provider,
): DynamicModule {
  return {
    module: LockModule,
    global: isGlobal,
    providers: [service],
    exports: [getLockServiceToken(name)],
  };
}
