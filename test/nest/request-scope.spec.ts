import 'reflect-metadata';
import { expect, it } from '@jest/globals';
import { Inject, Injectable, Module, Scope, type Type } from '@nestjs/common';
import { LazyModuleLoader, REQUEST } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import {
  LockModule,
  type LockModuleAsyncOptions,
  LockService,
  type LockOptionsFactory,
} from '../../lib/index.js';

const options = { store: 'memory' } as const;

@Injectable({ scope: Scope.REQUEST })
class Tenant {}

@Injectable({ scope: Scope.REQUEST, durable: true })
class Durable {}

@Injectable()
class Settings {
  constructor(readonly tenant: Tenant) {}
}

@Injectable()
class ByProperty {
  @Inject(Tenant) tenant!: Tenant;
}

@Injectable({ scope: Scope.TRANSIENT })
class Transient {}

@Injectable()
class OptionsOfTenant implements LockOptionsFactory {
  constructor(readonly settings: Settings) {}
  createLockOptions() {
    return options;
  }
}

const PROVIDERS = [Tenant, Durable, Settings, ByProperty, Transient];

@Module({ providers: PROVIDERS, exports: PROVIDERS })
class SettingsModule {}

@Module({})
class Lazy {}

const boot = async (async: LockModuleAsyncOptions) => {
  const imports = [LockModule.forRootAsync({ ...async, imports: [SettingsModule] })];
  return await (await Test.createTestingModule({ imports }).compile()).init();
};

const injecting = (token: Type | string): LockModuleAsyncOptions => ({
  name: 'tenants',
  inject: [token],
  useFactory: () => options,
});

it.each<[string, LockModuleAsyncOptions, RegExp]>([
  ['a request-scoped one', injecting(Tenant), /^inject: .*: Tenant is request-scoped, so each request/],
  ['a durable one', injecting(Durable), /^inject: .*: Durable is request-scoped/],
  ['the request', injecting(REQUEST), /^inject: .*: REQUEST is request-scoped/],
  ['one that injects it', injecting(Settings), /Settings is request-scoped \(Settings → Tenant\)/],
  [
    'one that injects it as a property',
    injecting(ByProperty),
    /ByProperty is request-scoped \(ByProperty → Tenant\)/,
  ],
  [
    'a class of options',
    { useClass: OptionsOfTenant },
    /^useClass: .*\(OptionsOfTenant → Settings → Tenant\)/,
  ],
])(
  'options that depend on a request are refused at boot, by name: %s (pitfall 87)',
  async (_, async, message) => {
    await expect(boot(async)).rejects.toMatchObject({
      code: 'LOCK_CONFIG',
      message: expect.stringMatching(message),
    });
  },
);

it('options that depend on a request are refused in a module that is loaded lazily, too (pitfall 87)', async () => {
  const app = await Test.createTestingModule({}).compile();
  await app.init();
  const made: number[] = [];
  const useFactory = () => {
    made.push(1);
    return options;
  };
  const load = (inject: Type[]) => {
    const locks = LockModule.forRootAsync({ imports: [SettingsModule], inject, useFactory, isGlobal: false });
    return app.get(LazyModuleLoader).load(() => ({ module: Lazy, imports: [locks] }));
  };
  const refused = await load([Settings]);
  await expect(refused.resolve(LockService, undefined, { strict: false })).rejects.toMatchObject({
    code: 'LOCK_CONFIG',
    message: expect.stringContaining('(Settings → Tenant)'),
  });
  expect(made).toEqual([]);
  await app.close();
});

it('options of a transient provider give one service', async () => {
  const app = await boot({ inject: [Transient], useFactory: () => options });
  expect(app.get(LockService)).toBeInstanceOf(LockService);
  await app.close();
});
