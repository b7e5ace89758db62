import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { RedisServer } from '../support/redis-server.js';
import { Cast } from './cast.js';
import { runProgram } from './program.js';
import { lockKeys } from '../support/keys.js';

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

describe('The process exits by itself', () => {
  const cast = new Cast();
  let server: RedisServer;

  beforeAll(async () => {
    server = await cast.server();
  });

  afterAll(() => cast.end());

  const onRedis = (rest: string) =>
    runProgram(`const locks = new LockService({ ${OPTIONS} });\n${rest}`, {
      env: { LOCK_URL: server.url },
    });

  it('after the last release and the shutdown', async () => {
    const output = await onRedis(`${USE_LOCKS} await locks.onApplicationShutdown();`);
    expect(output).toBe('LOCK_TIMEOUT');
    expect(await lockKeys(server.client())).toEqual([]);
  });

  it('after the shutdown while locks are held and waited for', async () => {
    const output = await onRedis(`
      const lease = await locks.acquire('held');
      const waiting = locks.acquire('held', { waitTime: Infinity }).catch((error) => error.code);
      await new Promise((resolve) => setTimeout(resolve, 50));
      locks.beforeApplicationShutdown();
      console.log(await waiting, lease.held);
      await locks.onApplicationShutdown();
      console.log(lease.held);
    `);
    expect(output).toBe('LOCK_CLOSED true\nfalse');
    expect(await lockKeys(server.client())).toEqual([]);
  });

  it('with a memory store, without a shutdown', async () => {
    const output = await runProgram(
      `const locks = new LockService({ store: 'memory', leaseTime: 90_000 }); ${USE_LOCKS}`,
    );
    expect(output).toBe('LOCK_TIMEOUT');
  });

  it.each([
    ['and a lock is held', `await locks.acquire('held');`, 'held'],
    ['and somebody waits', `await locks.inspect('other');`, 'other'],
  ])('after the shutdown while Redis answers nothing %s', async (_, prepare, name) => {
    const silent = await cast.server();
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
      { env: { LOCK_URL: silent.url } },
    );
    expect(output.split('\n').at(-1)).toBe('LOCK_CLOSED');
  });
});
