import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import type { Lock, LockEvent, LockService } from '../../lib/index.js';
import { blockFor } from '../pitfalls/stage.js';
import type { RedisServer } from '../support/redis-server.js';
import { TestEnvironment } from '../support/test-environment.js';
import { until } from './until.js';

describe('A loss is logged once', () => {
  const environment = TestEnvironment.ofAll();
  let server: RedisServer;
  let locks: LockService;
  let events: LockEvent[];
  const logger = { log: jest.fn(), warn: jest.fn(), error: jest.fn() };

  beforeAll(async () => {
    server = await environment.server();
  });

  beforeEach(() => {
    Logger.overrideLogger(logger);
    locks = environment.service({ connection: server.url, label: 'console' });
    events = [];
    locks.events$.subscribe((event) => events.push(event));
  });

  afterEach(() => {
    Logger.overrideLogger(false);
    jest.clearAllMocks();
  });

  const logged = (level: 'warn' | 'error') =>
    logger[level].mock.calls.map(([line]) => String(line)).filter((line) => line.startsWith('Lost'));

  const lostEvents = () => events.filter(({ type }) => type === 'lost');

  const KINDS: [string, () => Lock][] = [
    ['plain', () => locks.getLock('plain')],
    ['fair', () => locks.getFairLock('fair')],
  ];

  it.each(KINDS)('%s: as a warning, where a fixed lease runs out', async (name, lockOf) => {
    const lease = await lockOf().acquire({ leaseTime: 300 });
    await until(() => lease.signal.aborted);
    expect(lostEvents()).toEqual([
      { type: 'lost', name, label: lease.label, owner: lease.owner, reason: 'expired' },
    ]);
    expect(logged('warn')).toEqual([`Lost the lock "${name}" (owner ${lease.owner}): expired`]);
    expect(logged('error')).toEqual([]);
  });

  it('as a warning, where a fixed lease that was waited for runs out', async () => {
    const holder = await locks.getFairLock('waited').acquire();
    const waiting = locks.getFairLock('waited').acquire({ leaseTime: 1_500 });
    await until(async () => (await locks.inspect('waited'))?.queue.length === 1);
    await holder.release();
    const lease = await waiting;
    await until(() => lease.signal.aborted);
    expect(logged('warn')).toHaveLength(1);
    expect(logged('error')).toEqual([]);
  });

  it('as an error, where a fixed lease ends before its time', async () => {
    const lease = await locks.getLock('deleted').acquire({ leaseTime: 60_000 });
    await locks.forceRelease('deleted', { reason: 'stuck' });
    expect(lease.held).toBe(false);
    const line = `Lost the lock "deleted" (owner ${lease.owner}): deleted, taken away by "console": "stuck"`;
    expect(logged('error')).toEqual([line]);
    expect(logger.warn.mock.calls.map(([text]) => String(text))).toContain(
      'Took the lock "deleted" away from its holders: "stuck"',
    );
    expect(logged('warn')).toEqual([]);
  });

  it('as an error, where a lease that is renewed runs out', async () => {
    const lease = await locks.acquire('stopped', { leaseTime: 900, renew: true });
    blockFor(1_000);
    expect(lease.held).toBe(false);
    await sleep(0);
    expect(logged('error')).toHaveLength(1);
    expect(logged('warn')).toEqual([]);
  });
});
