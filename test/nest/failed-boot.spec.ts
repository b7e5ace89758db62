import 'reflect-metadata';
import { setImmediate as turn } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { Injectable, type ModuleMetadata, Scope } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { DistributedLock, LockConfigError, LockModule } from '../../lib/index.js';
import { until } from '../scenarios/until.js';
import { serverOfEach } from '../support/test-servers.js';
const server = serverOfEach();

/** Connections that are not of the package: those of this spec. */
let own: number;

/**
 * How many connections of the package the server has seen. A server accepts connections in the order in which they were
 * begun, so the answer to a new one counts all that were begun before.
 */
const connections = async () => {
  await turn();
  const client = server.client().duplicate();
  const stats = await client.info('stats');
  client.disconnect();
  return Number(/total_connections_received:(\d+)/.exec(stats)?.[1]) - ++own;
};

beforeEach(async () => {
  own = 0;
  const before = await connections();
  own += before;
});

const compile = (metadata: ModuleMetadata) => Test.createTestingModule(metadata).compile();

describe('a boot that fails, of which nothing may be left to close, leaves no connection behind', () => {
  it('when another provider fails', async () => {
    const away = {
      provide: 'database',
      useFactory: async () => {
        await connections();
        throw new Error('the database is away');
      },
    };
    const imports = [LockModule.forRoot({ connection: server.url })];
    await expect(compile({ imports, providers: [away] })).rejects.toThrow('the database is away');
    expect(await connections()).toBe(0);
  });

  it('when a decorator wants what the store does not have', async () => {
    @Injectable()
    class Orders {
      @DistributedLock('a', { kind: 'fair' })
      pay(): Promise<void> {
        return Promise.resolve();
      }
    }
    const imports = [LockModule.forRoot({ nodes: [0, 1, 2].map((db) => `${server.url}/${String(db)}`) })];
    await expect(compile({ imports, providers: [Orders] })).rejects.toThrow(LockConfigError);
    expect(await connections()).toBe(0);
  });

  it('when options of a cluster are wrong', async () => {
    const connection = {
      cluster: [{ host: '127.0.0.1', port: server.port }],
      options: { keyPrefix: 'app:', redisOptions: { keyPrefix: 'other:' } },
    };
    await expect(compile({ imports: [LockModule.forRoot({ connection })] })).rejects.toThrow(LockConfigError);
    expect(await connections()).toBe(0);
  });
});

describe.each([
  ['request-scoped', Scope.REQUEST],
  ['transient', Scope.TRANSIENT],
])('a %s provider, of which Nest makes instances later,', (_, scope) => {
  @Injectable({ scope })
  class Orders {
    @DistributedLock('a', { kind: 'fair' })
    pay(): Promise<string> {
      return Promise.resolve('paid');
    }
  }
  const nodes = () => [0, 1, 2].map((db) => `${server.url}/${String(db)}`);

  it('fails the boot as well where it wants what the store does not have', async () => {
    const imports = [LockModule.forRoot({ nodes: nodes() })];
    // Nest 11 injects into a prototype of the class at once, and Nest 12 does not.
    const booting = compile({ imports, providers: [Orders] }).then((app) => app.init());
    await expect(booting).rejects.toThrow(/@DistributedLock on Orders\.pay.*no fair lock/);
    expect(await connections()).toBe(0);
  });
});

it('connects when the application is initialised, before the first lock', async () => {
  const app = await compile({ imports: [LockModule.forRoot({ connection: server.url })] });
  await app.init();
  await until(async () => (await connections()) === 1);
  await app.close();
});

it('closes what has never been connected, without connecting', async () => {
  const app = await compile({ imports: [LockModule.forRoot({ connection: server.url })] });
  await app.close();
  expect(await connections()).toBe(0);
});
