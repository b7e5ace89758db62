import { describe, expect, it } from '@jest/globals';
import { TestEnvironment } from '../../support/test-environment.js';
import { runProgram } from '../program.js';
import { lockKeys } from '../../support/keys.js';
import { serverOfAll } from '../../support/test-servers.js';

/** Every timer that could be left behind is set to half a minute or more, and a program is killed long before that. */
const OPTIONS = `connection: process.env.LOCK_URL, leaseTime: 90_000`;
const USE_LOCKS = `
  const renewed = await locks.acquire('a');
  const next = locks.acquire('a', { waitTime: 60_000, signal: new AbortController().signal });
  const never = locks.acquire('a', { waitTime: 10, leaseTime: 60_000 }).catch((error) => error.code);
  const fixed = await locks.acquire('b', { leaseTime: 60_000 });
  const outcome = await never;
  await renewed.release();
  await (await next).release();
  await fixed.release();
  console.log(outcome);
`;

const moduleOf = (source: string) => `data:text/javascript,${encodeURIComponent(source)}`;
const RESOLVE_IOREDIS_5 = `export const resolve = (name, context, next) =>
  next(name === 'ioredis' ? 'ioredis-5' : name, context);`;
const WITH_IOREDIS_5 = `import { register } from 'node:module'; register(${JSON.stringify(moduleOf(RESOLVE_IOREDIS_5))}, ${JSON.stringify(import.meta.url)});`;

describe('The process exits by itself', () => {
  const environment = TestEnvironment.ofAll();
  const server = serverOfAll();

  const onRedis = (rest: string) =>
    runProgram(`const locks = new LockService({ ${OPTIONS} });\n${rest}`, {
      env: { LOCK_URL: server.url },
    });

  it('after the last release and the shutdown', async () => {
    const output = await onRedis(`${USE_LOCKS} await locks.onApplicationShutdown();`);
    expect(output).toBe('LOCK_TIMEOUT');
    expect(await lockKeys(server.client())).toEqual([]);
  });

  it('after the shutdown while calls of once wait for an answer of the store, and they have theirs', async () => {
    const output = await runProgram(`
      const locks = new LockService({ connection: 'redis://127.0.0.1:1', leaseTime: 90_000 });
      const call = () => locks.once('report', { period: '1h' }, () => 0).catch((error) => error.code);
      const asked = call().then((code) => console.log('before', code));
      await new Promise((resolve) => setTimeout(resolve, 500));
      await locks.onApplicationShutdown();
      console.log('after', await call());
      await asked;
    `);
    expect(output.split('\n').toSorted()).toEqual(['after LOCK_CLOSED', 'before LOCK_CLOSED']);
  });

  it('after the shutdown while locks are held and waited for', async () => {
    const output = await onRedis(`
      const lease = await locks.acquire('held');
      const waiting = locks.acquire('held', { waitTime: Infinity }).catch((error) => error.code);
      await new Promise((resolve) => setTimeout(resolve, 50));
      const closed = locks.onApplicationShutdown();
      console.log(await waiting, lease.held);
      await closed;
    `);
    expect(output).toBe('LOCK_CLOSED false');
    expect(await lockKeys(server.client())).toEqual([]);
  });

  it('when the lease time after the last hook is over, where a callback never ends', async () => {
    const output = await runProgram(
      `
      import { Module } from '@nestjs/common';
      import { NestFactory } from '@nestjs/core';
      import { LockModule } from 'nestjs-distributed-lock';
      class AppModule {}
      Module({ imports: [LockModule.forRoot({ connection: process.env.LOCK_URL, leaseTime: 5_000 })] })(AppModule);
      const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
      const locks = app.get(LockService);
      await new Promise((begun) => {
        void locks.using('hangs', ({ signal }) => {
          signal.addEventListener('abort', () => console.log(signal.reason.reason));
          begun();
          return new Promise(() => undefined);
        });
      });
      await app.close();
      console.log('closed');
      process.on('exit', () => console.log('exit'));
      `,
      // Nest's own classes are tokens.
      { bundled: false, env: { LOCK_URL: server.url } },
    );
    expect(output.split('\n')).toEqual(['closed', 'expired', 'exit']);
  });

  it('with a memory store, without a shutdown', async () => {
    const output = await runProgram(
      `const locks = new LockService({ store: 'memory', leaseTime: 90_000 }); ${USE_LOCKS}`,
    );
    expect(output).toBe('LOCK_TIMEOUT');
  });

  it('after a test with the testing module that has failed before its end', async () => {
    const output = await runProgram(`
      import { Test } from '@nestjs/testing';
      import { LockTestingModule, makeLockBusy } from 'nestjs-distributed-lock/testing';
      const module = await Test.createTestingModule({ imports: [LockTestingModule.forRoot()] }).compile();
      const locks = module.get(LockService);
      for (const lock of [locks.getLock('a'), locks.getFairLock('b'), locks.getReadWriteLock('c').read]) {
        await makeLockBusy(lock);
      }
      await locks.acquire('fixed', { leaseTime: 60_000 });
      locks.using('a', { waitTime: Infinity }, () => undefined);
      locks.getFairLock('b').acquire({ waitTime: Infinity });
      locks.getReadWriteLock('c').write.acquire({ waitTime: Infinity });
      locks.acquire(['d', 'a'], { waitTime: Infinity });
      locks.acquire('fixed', { waitTime: Infinity });
      // Long enough for the timers that begin with the first second of a hold.
      await new Promise((resolve) => setTimeout(resolve, 1_200));
      console.log('failed');
    `);
    expect(output).toBe('failed');
  });

  const IOREDIS_5 = { bundled: false, env: { NODE_OPTIONS: `--import=${moduleOf(WITH_IOREDIS_5)}` } };

  it.each([
    ['and a lock is held', `await locks.acquire('held');`, 'held', {}],
    ['and somebody waits', `await locks.inspect('other');`, 'other', {}],
    ['and a lock is held, on ioredis 5', `await locks.acquire('held');`, 'held', IOREDIS_5],
  ])(
    'after the shutdown while Redis answers nothing %s',
    async (
      _,
      prepare,
      name,
      { env = {}, ...options }: { env?: Record<string, string>; bundled?: boolean },
    ) => {
      const silent = await environment.server();
      const output = await runProgram(
        `
      const locks = new LockService({ ${OPTIONS} });
      ${prepare}
      process.kill(${String(silent.pid)}, 'SIGSTOP');
      const waiting = locks.acquire('${name}', { waitTime: Infinity }).catch((error) => error.code);
      await new Promise((resolve) => setTimeout(resolve, 50));
      await locks.onApplicationShutdown();
      console.log('\\n' + (await waiting));
      `,
        { ...options, env: { LOCK_URL: silent.url, ...env } },
      );
      expect(output.split('\n').at(-1)).toBe('LOCK_CLOSED');
    },
  );
});
