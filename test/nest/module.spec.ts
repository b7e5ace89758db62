import 'reflect-metadata';
import { afterEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { inspect } from 'node:util';
import { Inject, Injectable, Module } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  getLockServiceToken,
  InjectLockService,
  LockConfigError,
  LockModule,
  type LockModuleOptions,
  LockService,
  type LockFactoryOptions,
  type LockModuleAsyncOptions,
  type LockOptionsFactory,
} from '../../lib/index.js';

let app: TestingModule | undefined;

const boot = async (...imports: NonNullable<Parameters<typeof Test.createTestingModule>[0]['imports']>) => {
  app = await Test.createTestingModule({ imports }).compile();
  await app.init();
  return app;
};

afterEach(async () => {
  await app?.close();
  app = undefined;
});

@Injectable()
class Settings implements LockOptionsFactory {
  createLockOptions() {
    return Promise.resolve({ store: 'memory' as const, leaseTime: 5_000 });
  }
}

@Module({ providers: [Settings], exports: [Settings] })
class SettingsModule {}

const leaseTimeOf = async (locks: LockService) => {
  const lease = await locks.acquire('a');
  return Math.round(lease.remainingTime() / 1_000);
};

describe('LockModule', () => {
  it('forRoot gives every module a service', async () => {
    @Injectable()
    class Orders {
      constructor(readonly locks: LockService) {}
    }
    @Module({ providers: [Orders] })
    class OrdersModule {}

    const { locks } = (await boot(LockModule.forRoot({ store: 'memory' }), OrdersModule)).get(Orders, {
      strict: false,
    });
    expect(locks).toBeInstanceOf(LockService);
    expect(await locks.using('a', () => 'held')).toBe('held');
  });

  it('forRootAsync takes a factory with dependencies', async () => {
    const dynamic = LockModule.forRootAsync({
      imports: [SettingsModule],
      inject: [Settings],
      useFactory: async (settings: Settings) => settings.createLockOptions(),
    });
    expect(await leaseTimeOf((await boot(dynamic)).get(LockService, { strict: false }))).toBe(5);
  });

  it('forRootAsync takes a class', async () => {
    const dynamic = LockModule.forRootAsync({ useClass: Settings });
    expect(await leaseTimeOf((await boot(dynamic)).get(LockService, { strict: false }))).toBe(5);
  });

  it('forRootAsync takes an existing provider', async () => {
    const dynamic = LockModule.forRootAsync({ imports: [SettingsModule], useExisting: Settings });
    expect(await leaseTimeOf((await boot(dynamic)).get(LockService, { strict: false }))).toBe(5);
  });

  it('forRootAsync wants exactly one of the three', () => {
    expect(() => LockModule.forRootAsync({})).toThrow(LockConfigError);
    expect(() =>
      LockModule.forRootAsync({ useClass: Settings, useFactory: () => ({ store: 'memory' }) }),
    ).toThrow(LockConfigError);
  });

  it.each<[string, unknown, RegExp]>([
    ['nothing', undefined, /options: must be an object \(found: undefined\)/],
    ['a factory that is none', { useFactory: 5 }, /useFactory: must be a function \(found: 5\)/],
    [
      'an option that its factory is to give',
      { useFactory: () => ({ store: 'memory' }), leaseTime: 5 },
      /leaseTime: is not an option of forRootAsync; there are name, isGlobal,/,
    ],
    ['arguments of no factory', { useClass: Settings, inject: [Settings] }, /inject: gives useFactory its/],
    ['a wrong isGlobal', { useClass: Settings, isGlobal: 'no' }, /isGlobal: must be true or false/],
    ['a wrong name', { useClass: Settings, name: '' }, /name: must be a non-empty string/],
  ])('forRootAsync refuses %s', (_, options, message) => {
    expect(() => LockModule.forRootAsync(options as never)).toThrow(LockConfigError);
    expect(() => LockModule.forRootAsync(options as never)).toThrow(message);
  });

  describe('forRootAsync, whose factory gives what belongs beside it,', () => {
    const boot = (ownWriteHold: object, made: object) =>
      Test.createTestingModule({
        imports: [
          LockModule.forRootAsync({ ...ownWriteHold, useFactory: () => ({ store: 'memory', ...made }) }),
        ],
      }).compile();

    it.each([
      [{}, { name: 'orders' }],
      [{ name: 'orders' }, { name: 'stock' }],
      [{}, { isGlobal: false }],
      [{ isGlobal: false }, { isGlobal: true }],
    ])('refuses another one: %j, %j', async (ownWriteHold, made) => {
      await expect(boot(ownWriteHold, made)).rejects.toMatchObject({
        code: 'LOCK_CONFIG',
        message: expect.stringContaining('belongs beside the factory of forRootAsync'),
      });
    });
  });

  it('forRootAsync says what a class lacks that makes no options', async () => {
    @Injectable()
    class Nothing {}
    const dynamic = LockModule.forRootAsync({ useClass: Nothing as never });
    const booting = Test.createTestingModule({ imports: [dynamic] }).compile();
    await expect(booting).rejects.toThrow(LockConfigError);
    await expect(booting).rejects.toThrow(/createLockOptions.*\(Nothing\)/);
  });

  it('gives named instances beside the default one', async () => {
    @Injectable()
    class Reports {
      @InjectLockService('property') readonly byProperty!: LockService;
      constructor(
        readonly locks: LockService,
        @InjectLockService('reports') readonly reports: LockService,
        @Inject(getLockServiceToken('async')) readonly viaToken: LockService,
      ) {}
    }
    @Module({ providers: [Reports] })
    class ReportsModule {}

    const booted = await boot(
      LockModule.forRoot({ store: 'memory' }),
      LockModule.forRoot({ store: 'memory', name: 'reports' }),
      LockModule.forRoot({ store: 'memory', name: 'property' }),
      LockModule.forRootAsync({ name: 'async', useFactory: () => ({ store: 'memory' }) }),
      ReportsModule,
    );
    const reports = booted.get(Reports, { strict: false });
    const all = [reports.locks, reports.reports, reports.byProperty, reports.viaToken];
    expect(new Set(all).size).toBe(4);
    // Each has its own store, so the same name is another lock.
    for (const locks of all) expect((await locks.tryAcquire('a'))?.held).toBe(true);
  });

  it('fails the boot with the cure when a named instance is not provided', async () => {
    @Injectable()
    class Reports {
      constructor(@InjectLockService('nowhere') readonly locks: LockService) {}
    }
    const booting = Test.createTestingModule({
      imports: [LockModule.forRoot({ store: 'memory' })],
      providers: [Reports],
    }).compile();
    await expect(booting).rejects.toThrow(/LockModule\.forRoot\(\{ name: "nowhere"/);
  });

  it('is not global when told so', async () => {
    @Injectable()
    class Orders {
      constructor(readonly locks: LockService) {}
    }
    @Module({ providers: [Orders] })
    class OrdersModule {}

    const booting = Test.createTestingModule({
      imports: [LockModule.forRoot({ store: 'memory', isGlobal: false }), OrdersModule],
    }).compile();
    await expect(booting).rejects.toThrow(/LockService/);
  });

  it.each(['reference', 'deep-hash'] as const)(
    'keeps two modules with options of their own apart, known to Nest by %s',
    async (moduleIdGeneratorAlgorithm) => {
      const feature = (keyPrefix: string) => {
        @Module({
          imports: [LockModule.forRoot({ store: 'memory', keyPrefix, isGlobal: false })],
          providers: [
            { provide: keyPrefix, inject: [LockService], useFactory: (locks: LockService) => locks },
          ],
        })
        class Feature {}
        return Feature;
      };
      const imports = [feature('one:'), feature('two:')];
      app = await Test.createTestingModule({ imports }, { moduleIdGeneratorAlgorithm }).compile();
      const [one, two] = ['one:', 'two:'].map((name) => app!.get<LockService>(name, { strict: false }));
      await one!.acquire('a');
      expect(await two!.tryAcquire('a')).not.toBeNull();
    },
  );
});

class Config {
  get port() {
    return Number('6379');
  }
}

it('LockService among the providers of a module fails the boot, and says how it is provided', async () => {
  const module = Test.createTestingModule({ providers: [LockService] });
  await expect(module.compile()).rejects.toThrow(/^options: must be .*leave it out of providers/);
});

describe('wrong options fail at boot, with the option, the rule and the value', () => {
  it.each<[string, unknown, RegExp]>([
    ['none of the three', {}, /connection \/ nodes \/ store.*none/],
    ['two of the three', { store: 'memory', connection: 'redis://x' }, /connection and store/],
    ['no object', undefined, /options/],
    ['a URL of another kind', { connection: 'http://user:secret@x' }, /redis:\/\/ or rediss:\/\/.*http:/],
    ['text that is no URL', { connection: 'localhost' }, /redis:\/\//],
    ['a URL without a host', { connection: 'redis://' }, /connection: is not a valid URL/],
    ['a number for a connection', { connection: 6379 }, /connection.*6379/],
    ['a list for a connection', { connection: ['redis://a'] }, /connection: must be a URL.*an array of 1/],
    [
      'a URL that is no text',
      { connection: new URL('redis://u:secret@a') },
      /^(?!.*secret)connection: must be a URL.*\(URL\)/,
    ],
    [
      'options of another library',
      { connection: { url: 'redis://u:secret@a' } },
      /^(?!.*secret)connection\.url: .*the URL itself/,
    ],
    ...['socket', 'hostname', 'addresses', 'uri'].map((name): [string, unknown, RegExp] => [
      `${name} of another library`,
      { connection: { [name]: 'u:secret@a' } },
      new RegExp(`^(?!.*secret)connection\\.${name}: is no option of ioredis; give `),
    ]),
    ['a Promise', { connection: Promise.resolve('redis://a') }, /connection: must be a URL.*\(Promise\)/],
    ['options by getters of a class', { connection: new Config() }, /connection: must be .*\(Config\)/],
    [
      'a client of another library',
      { nodes: ['redis://a', { duplicate: () => undefined, options: {} }, 'redis://c'] },
      /nodes\[1\]: must be .*an ioredis client/,
    ],
    ['an unknown store', { store: 'disk' }, /store.*"disk"/],
    ['half a store', { store: { acquire: () => undefined } }, /store/],
    [
      'an even number of nodes',
      { nodes: ['redis://a', 'redis://b', 'redis://c', 'redis://d'] },
      /nodes.*odd number/,
    ],
    ['two nodes', { nodes: ['redis://a', 'redis://b'] }, /nodes.*at least 3/],
    ['one node', { nodes: ['redis://a'] }, /nodes.*at least 3/],
    ['a node twice', { nodes: ['redis://a', 'redis://b', 'redis://a'] }, /nodes\[2\].*same connection/],
    ['nodes that are no array', { nodes: 'redis://a' }, /nodes.*array.*a text of 9 characters/],
    [
      'a bad URL among them',
      { nodes: ['redis://a', 'http://u:secret@b', 'redis://c'] },
      /nodes\[1\].*redis:\/\/.*http:/,
    ],
    [
      'a cluster as a node',
      { nodes: ['redis://a', 'redis://b', { cluster: [{ host: 'c', port: 6379 }] }] },
      /nodes\[2\].*cluster is no single vote/,
    ],
    [
      'a cluster client as a node',
      { nodes: ['redis://a', { isCluster: true, duplicate: () => undefined }, 'redis://c'] },
      /nodes\[1\].*cluster is no single vote/,
    ],
    ['a closed client', { connection: { status: 'end', duplicate: () => 1 } }, /is closed; pass one.*"end"/],
    [
      'a client of messages',
      { connection: { status: 'ready', mode: 'subscriber', duplicate: () => 1 } },
      /is in subscriber mode/,
    ],
    ['replication of a store', { store: 'memory', replication: { replicas: 1 } }, /goes with connection/],
    ['nodes and a connection', { nodes: ['redis://a'], connection: 'redis://b' }, /connection and nodes/],
    ['a negative leaseTime', { store: 'memory', leaseTime: -1 }, /leaseTime.*-1/],
    ['a fractional leaseTime', { store: 'memory', leaseTime: 10.5 }, /leaseTime.*10\.5/],
    ['a leaseTime below the drift', { store: 'memory', leaseTime: 2 }, /leaseTime.*drift.*2/],
    ['NaN', { store: 'memory', waitTime: NaN }, /waitTime.*NaN/],
    ['an endless lease', { store: 'memory', leaseTime: Infinity }, /leaseTime.*Infinity/],
    ['a maxHoldTime of 0', { store: 'memory', maxHoldTime: 0 }, /maxHoldTime.*0/],
    ['a negative localHandoff', { store: 'memory', localHandoff: -1 }, /localHandoff.*-1/],
    ['too many hand-offs', { store: 'memory', localHandoff: 1_000 }, /localHandoff.*0 to 999.*1000/],
    ['hand-offs as a text', { store: 'memory', localHandoff: '3' }, /localHandoff.*999; .*Number\(…\).*"3"/],
    [
      'replicas as a text',
      { connection: 'redis://a', replication: { replicas: '3' } },
      /replicas.*; .*Number\(…\).*"3"/,
    ],
    ['a prefix that is no text', { store: 'memory', keyPrefix: 1 }, /keyPrefix.*1/],
    ['an empty name', { store: 'memory', name: '' }, /name.*""/],
    ['isGlobal that is no boolean', { store: 'memory', isGlobal: 'yes' }, /isGlobal.*"yes"/],
    ['an option that does not exist', { store: 'memory', maxHoldTme: 5 }, /maxHoldTme/],
    ['an option of the client', { host: 'localhost' }, /^host: .* write connection: \{ host: … \}/],
    ['a URL by another name', { url: 'redis://:S3cret@a' }, /^url: (?!.*S3cret).* write connection: 'redis:/],
    [
      'a misspelt option of replication',
      { connection: 'redis://a', replication: { replicas: 1, tiemout: 5 } },
      /^tiemout: is not an option of replication, did you mean timeout\?/,
    ],
    [
      'a misspelt option of a cluster',
      { connection: { cluster: [1], optoins: {} } },
      /^optoins: is not an option of connection, did you mean options\?/,
    ],
    [
      'nodes of a cluster beside options of ioredis',
      { connection: { cluster: [1], host: 'a' } },
      /^host: is not an option of connection/,
    ],
    [
      'a cluster that is not there',
      { connection: { cluster: undefined } },
      /^connection\.cluster: must be an array/,
    ],
    [
      'options of a cluster that are none',
      { connection: { cluster: [1], options: 'x' } },
      /options: must be an object/,
    ],
  ])('%s', async (_, options, message) => {
    expect(() => LockModule.forRoot(options as LockModuleOptions)).toThrow(LockConfigError);
    expect(() => LockModule.forRoot(options as LockModuleOptions)).toThrow(message);
    const later = LockModule.forRootAsync({ useFactory: () => options as LockModuleOptions });
    await expect(Test.createTestingModule({ imports: [later] }).compile()).rejects.toThrow(LockConfigError);
  });

  it.each<[string, object, RegExp]>([
    ['db', { db: NaN }, /db: must be a whole number from 0 to 2147483647 \(found: NaN\)$/],
    ['db', { db: 'foo' }, /db: must be a whole number .*"foo"/],
    ['db', { db: '1' }, /db: must be .* and no text: convert it, as by Number\(…\) \(found: "1"\)$/],
    ['port', { port: NaN }, /port: must be a whole number from 1 to 65535 \(found: NaN\)$/],
    ['port', { port: '6379' }, /port: .* convert it.*"6379"/],
    [
      'connectTimeout',
      { connectTimeout: '500' },
      /connectTimeout: must be a whole number of ms .* convert it/,
    ],
    ['tls', { tls: true }, /tls: must be an object of TLS options.*true/],
    ['monitor', { monitor: true }, /monitor: a client that monitors takes no commands.*true/],
    ['connectionName', { connectionName: 'a b' }, /connectionName: must be a text of ASCII.*without.*"a b"/],
    ['host', { host: 1 }, /host: must be a text and no URL.*1/],
    [
      'host',
      { host: undefined },
      /host: has no value, so ioredis would connect to its default.*undefined\)$/,
    ],
    ['port', { host: 'a', port: undefined }, /port: has no value.*undefined/],
    ['path', { path: undefined }, /path: has no value/],
    ['sentinels', { name: 'm', sentinels: undefined }, /sentinels: has no value/],
    ['name', { sentinels: [{ host: 'a' }] }, /name: must be the name of the master.*undefined\)$/],
    ['name', { name: 'm' }, /name: is no address.*give sentinels too, or a host$/],
    ['sentinels[1].host', { name: 'm', sentinels: [{ host: 'a' }, { host: undefined }] }, /has no value/],
    ['cluster[0].host', { cluster: [{ host: undefined, port: 7_000 }] }, /has no value/],
    ['cluster[1].port', { cluster: ['a:1', { host: 'b', port: undefined }] }, /has no value/],
    ['password', { host: 'a', password: () => 'secret' }, /password: must be a text(?!.*secret)/],
    ['sentinels[0].port', { name: 'm', sentinels: [{ port: '26379' }] }, /port: .* convert it/],
    ['sentinels[0]', { name: 'm', sentinels: ['a'] }, /must be an object of ioredis options.*"a"/],
    ['sentinels', { name: 'm', sentinels: [] }, /at least one \{ host, port \}/],
    ['cluster[0]', { cluster: [0] }, /cluster\[0\]: must be a whole number from 1 to 65535.*0/],
    ['options.slotsRefreshTimeout', { cluster: [1], options: { slotsRefreshTimeout: '500' } }, /convert it/],
    ['options.redisOptions.tls', { cluster: [1], options: { redisOptions: { tls: true } } }, /tls: must be/],
  ])('of ioredis, wherever a client is made of them: %s in %j', (option, connection, rule) => {
    const places = 'cluster' in connection ? [] : [{ nodes: ['redis://a', connection, 'redis://b'] }];
    for (const options of [{ connection }, ...places]) {
      const path = 'nodes' in options ? 'nodes[1]' : 'connection';
      const boot = () => LockModule.forRoot(options);
      expect(boot).toThrow(expect.objectContaining({ code: 'LOCK_CONFIG', option: `${path}.${option}` }));
      expect(boot).toThrow(rule);
    }
  });

  it.each<object>([
    { ...new Redis({ lazyConnect: true }).options },
    { host: '::1', db: 0, connectTimeout: 0, keepAlive: 0, noDelay: false, monitor: false, tls: undefined },
    { path: '/run/user@1000/redis.sock', tls: {}, connectionName: '', unheardOf: 'user@x' },
    { sentinels: [{ host: 'a', port: 26_379 }, {}], name: 'm', sentinelRetryStrategy: null },
    { cluster: [{ host: 'a' }, '7000', 7_001], options: { retryDelayOnFailover: 0, unheardOf: true } },
  ])('valid options, and options that ioredis alone knows, are passed on: %j', (connection) => {
    expect(() => LockModule.forRoot({ connection })).not.toThrow();
  });

  it('the options of a client of the application are not checked', () => {
    const connection = new Redis({ lazyConnect: true, port: NaN, connectTimeout: -1 });
    expect(() => LockModule.forRoot({ connection })).not.toThrow();
  });

  it.each<[string, unknown]>([
    ['nodes', { nodes: 'redis://:secret@a:6379' }],
    ['store', { store: 'redis://:secret@a:6379' }],
    ['replication', { connection: 'redis://a', replication: 'redis://:secret@a:6379' }],
    ['keyPrefix', { connection: 'redis://a', keyPrefix: ['redis://:secret@a'] }],
    ['leaseTime', { connection: 'redis://a', leaseTime: 'redis://:secret@a' }],
    ['name', { connection: 'redis://a', name: { toString: () => 'redis://:secret@a' } }],
    ['a connection that only looks like a URL', { connection: 'secret:@host' }],
    ['a URL of another kind', { connection: 'http://user:secret@x' }],
    ['a connection that is a password', { connection: 'secret' }],
    ['host', { connection: { host: 'redis://:secret@a:6379' } }],
    ['host, without a scheme', { connection: { host: 'secret@a' } }],
    ['path', { connection: { path: 'redis://:secret@a:6379' } }],
    ['path, without a scheme', { connection: { path: ':secret@a:6379' } }],
    ['port', { connection: { port: ':secret@a:6379' } }],
    ['db', { connection: { db: 'redis://:secret@a' } }],
    ['tls', { connection: { tls: 'rediss://:secret@a' } }],
    ['connectTimeout', { connection: { connectTimeout: 'redis://:secret@a' } }],
    ['host of a node', { nodes: ['redis://a', { host: 'redis://:secret@a' }, 'redis://b'] }],
    ['host of a sentinel', { connection: { name: 'm', sentinels: [{ host: 'redis://:secret@a' }] } }],
    ['a sentinel', { connection: { name: 'm', sentinels: ['redis://:secret@a'] } }],
    ['sentinels', { connection: { name: 'm', sentinels: 'redis://:secret@a' } }],
    ['name of a master', { connection: { name: 'redis://:secret@a', sentinels: [{ port: 1 }] } }],
    ['host of a cluster', { connection: { cluster: [{ host: 'redis://:secret@a' }] } }],
    ['url of a cluster', { connection: { cluster: [{ url: 'redis://:secret@a' }] } }],
    ['options of a cluster', { connection: { cluster: [1], options: 'redis://:secret@a' } }],
    ['a misspelt option of a cluster', { connection: { cluster: [1], 'redis://:secret@a': 1 } }],
    ['the options themselves', 'redis://:secret@a:6379'],
    ['the name of an option', { 'redis://:secret@a:6379': 1 }],
  ])('never repeats an address that stands in the wrong place: %s (pitfall 62)', (_, options) => {
    const errors: unknown[] = [];
    for (const boot of [LockModule.forRoot, LockModule.forRootAsync]) {
      try {
        boot.call(LockModule, options as LockModuleOptions & LockModuleAsyncOptions);
      } catch (error) {
        errors.push(error);
      }
    }
    expect(errors).toEqual([expect.any(LockConfigError), expect.any(LockConfigError)]);
    expect(inspect(errors, { showHidden: true })).not.toMatch(/secret/);
  });

  it('quotes the name of an option that does not exist, so that it forges no line of a log', () => {
    const options = { store: 'memory', 'lease\nTime"': 1 } as unknown as LockModuleOptions;
    expect(() => LockModule.forRoot(options)).toThrow(/^lease\\nTime\\": is not an option of LockModule/);
  });

  it('a wrong option that a factory returns fails as well (pitfall 62)', async () => {
    const useFactory = () => 'redis://:secret@a:6379' as unknown as LockFactoryOptions;
    const boot = Test.createTestingModule({ imports: [LockModule.forRootAsync({ useFactory })] }).compile();
    const error: unknown = await boot.catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(LockConfigError);
    expect((error as Error).message).not.toMatch(/secret/);
  });
});

describe('two services of one name that every module would see', () => {
  @Module({ imports: [LockModule.forRoot({ store: 'memory' })] })
  class Stock {}
  @Module({ imports: [LockModule.forRoot({ store: 'memory', keyPrefix: 'b:' })] })
  class Billing {}

  it('are refused at boot, with the modules that import them', async () => {
    const boot = Test.createTestingModule({ imports: [Stock, Billing] }).compile();
    const application = (await boot).createNestApplication();
    application.useLogger(false);
    await expect(application.init()).rejects.toThrow(
      /^name: 2 services without a name are provided for every module, .* \(imported by Stock and Billing\)/,
    );
    await application.close().catch(() => undefined);
  });

  it('are refused where they have one name', async () => {
    const named = () => LockModule.forRoot({ store: 'memory', name: 'jobs' });
    const module = await Test.createTestingModule({ imports: [named(), named()] }).compile();
    await expect(module.init()).rejects.toThrow(/^name: 2 services named "jobs" are provided/);
    // Nest 11 rejects once more with what has failed the boot.
    await module.close().catch(() => undefined);
  });

  it.each([undefined, 'jobs'])(
    'are refused where one module imports both for itself (name: %s)',
    async (name) => {
      const own = () => LockModule.forRoot({ store: 'memory', isGlobal: false, name });
      @Module({ imports: [own(), own()] })
      class Jobs {}
      const module = await Test.createTestingModule({ imports: [Jobs] }).compile();
      await expect(module.init()).rejects.toThrow(
        /^name: Jobs imports 2 services (without a name|named "jobs"), /,
      );
      // Nest 11 rejects once more with what has failed the boot.
      await module.close().catch(() => undefined);
    },
  );

  it('are possible where only one of them is for all, and the others for the modules that import them', async () => {
    @Module({ imports: [LockModule.forRoot({ store: 'memory', isGlobal: false })] })
    class Own {}
    const module = await Test.createTestingModule({ imports: [Stock, Own] }).compile();
    await module.init();
    await module.close();
  });
});
