import { describe, expect, it } from '@jest/globals';
import { runProgram } from '../program.js';
import { serverOfAll } from '../../support/test-servers.js';

/** `LockService` is that of the ESM build. */
const CJS = `
  import { createRequire } from 'node:module';
  const require = createRequire(process.cwd() + '/');
  const loadCjs = () => require('nestjs-distributed-lock');`;

/** Runs a module in which both builds can be loaded, and gives back the lines that it printed. */
const run = async (source: string, env: Record<string, string> = {}) =>
  (await runProgram(`${CJS}\n${source}`, { bundled: false, env })).split('\n');

describe('The ESM and the CJS build in one process', () => {
  const server = serverOfAll();

  /** A client of the application, and a service of each build that uses it. */
  const sharingClient = (rest: string) =>
    run(
      `
      import { Redis } from 'ioredis';
      const client = new Redis(process.env.LOCK_URL);
      const services = [new LockService({ connection: client }), new (loadCjs().LockService)({ connection: client })];
      for (const locks of services) await locks.using('a', () => undefined);
      const close = () => Promise.all(services.map((locks) => locks.onApplicationShutdown()));
      ${rest}
      client.disconnect();`,
      { LOCK_URL: server.url },
    );

  it('listen to a client with one function, and leave nothing on it', async () => {
    const lines = await sharingClient(`
      console.log('listeners', client.listenerCount('error'));
      await close();
      console.log('left', client.eventNames().length);`);
    expect(lines).toEqual(expect.arrayContaining(['listeners 1', 'left 0']));
  });

  it('take the members of a multi-lock of the other build, and one permit of a semaphore', async () => {
    const lines = await run(`
      const [esm, cjs] = [LockService, loadCjs().LockService].map((Service) => new Service({ store: 'memory' }));
      for (const [by, of] of [[esm, cjs], [cjs, esm]]) {
        const pair = of.getMultiLock([of.getLock('b'), of.getLock('a')]);
        const lock = by.getMultiLock([pair, of.getLock('a')]);
        console.log(await lock.using((lease) => [...lease.fencingTokens.keys()].join()));
        for (const again of [of.getSemaphore('pool', 2), of.getSemaphore('pool', 3)]) {
          try {
            by.getMultiLock([of.getMultiLock([of.getSemaphore('pool', 2), of.getLock('a')]), again]);
          } catch (error) {
            console.log(error.code, error.message.includes('"pool" is given'));
          }
        }
      }`);
    const refused = 'LOCK_CONFIG true';
    expect(lines).toEqual(['a,b', refused, refused, 'a,b', refused, refused]);
  });

  /** An application that uses both builds. */
  const APP = `
    import { Module } from '@nestjs/common';
    import { NestFactory } from '@nestjs/core';
    import * as esm from 'nestjs-distributed-lock';
    const cjs = loadCjs();
    const boot = (imports, providers = []) => {
      class App {}
      Module({ imports, providers })(App);
      return NestFactory.createApplicationContext(App, { logger: false, abortOnError: false });
    };`;

  it('find that they have decorated two classes of one name with one key', async () => {
    const lines = await run(`${APP}
      const orders = [esm, cjs].map(({ DistributedLock }) => {
        class Orders {
          async pay() {}
        }
        DistributedLock('$<class>')(Orders.prototype, 'pay', Object.getOwnPropertyDescriptor(Orders.prototype, 'pay'));
        return Orders;
      });
      const locks = esm.LockModule.forRoot({ store: 'memory' });
      await boot([locks], orders).then(() => console.log('booted'), ({ message }) => console.log(message));`);
    expect(lines).toEqual([expect.stringContaining('another class is named "Orders" and has the same key')]);
  });

  it('close together, so that work under a lock of one gets a lock of the other', async () => {
    const lines = await run(`${APP}
      const app = await boot([esm, cjs].map(({ LockModule }, index) =>
        LockModule.forRoot({ store: 'memory', name: String(index) })));
      const [one, two] = ['0', '1'].map((name) => app.get(esm.getLockServiceToken(name)));
      let work, goOn;
      await new Promise((begun) => {
        work = one.using('a', async () => {
          await new Promise((resolve) => begun((goOn = resolve)));
          return await two.using('b', () => 'both');
        });
      });
      await app.close();
      goOn();
      console.log(await work.catch(({ code }) => code));`);
    expect(lines).toEqual(['both']);
  });
});
