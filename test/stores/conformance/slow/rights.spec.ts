import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { isLockUnavailableError, type Lease, type Lock, type LockService } from '../../../../lib/index.js';
import { LogLines } from '../../redis/log-lines.js';
import { TestEnvironment } from '../../../support/test-environment.js';
import { until } from '../../../scenarios/until.js';
import { createLeastUser, LEAST_PRIVILEGES } from '../../../support/acl.js';
import { serverOfAll } from '../../../support/test-servers.js';

const KINDS: Record<string, (locks: LockService) => Lock> = {
  plain: (locks) => locks.getLock('name'),
  fair: (locks) => locks.getFairLock('name'),
  read: (locks) => locks.getReadWriteLock('name').read,
  write: (locks) => locks.getReadWriteLock('name').write,
  semaphore: (locks) => locks.getSemaphore('name', 1),
  multi: (locks) => locks.getMultiLock([locks.getLock('name'), locks.getLock('other')]),
};

/** What may be asked of a lock while it is held. A release never rejects. */
const COMMANDS: Record<string, (lease: Lease, lock: Lock) => unknown> = {
  extend: (lease) => lease.extend(20_000),
  release: (lease) => lease.release(),
  isLocked: (_, lock) => lock.isLocked(),
  forceRelease: (_, lock) => lock.forceRelease(),
};

const RIGHTS = LEAST_PRIVILEGES.filter((privilege) => privilege.startsWith('+')).map((right) =>
  right.slice(1),
);
const services = new TestEnvironment();
const server = serverOfAll();
let redis: Redis;
let logs: LogLines;

beforeAll(async () => {
  redis = server.client();
});

beforeEach(async () => {
  logs = new LogLines();
  await redis.flushall();
  await redis.script('FLUSH');
  await createLeastUser(redis, 'user');
});

afterEach(async () => {
  await services.end();
  logs.stop();
});

const take = (right: string) => redis.acl('SETUSER', 'user', `-${right}`);
const give = (right: string) => redis.acl('SETUSER', 'user', `+${right}`);
const service = (leaseTime = 30_000) =>
  services.service({
    connection: { host: '127.0.0.1', port: server.port, username: 'user', password: 'word' },
    leaseTime,
    localHandoff: 0,
  });

/** What both sides of a forced release log. */
const isOfForce = (line: string): boolean => /^(?:Lost|Took) the lock/.test(line);

/** Either it works without that right, or the error names the right. */
function judge(outcome: unknown, right: string): void {
  if (!(outcome instanceof Error)) return;
  const [command = ''] = right.split('|');
  expect([isLockUnavailableError(outcome) && outcome.permanent, outcome.cause]).toEqual([
    true,
    expect.objectContaining({ message: expect.stringMatching(new RegExp(`\\b${command}\\b`, 'i')) }),
  ]);
}

const outcomeOf = (promise: unknown): Promise<unknown> =>
  Promise.resolve(promise).catch((error: unknown) => error);

describe.each(Object.entries(KINDS))('A right that is taken away from a user of locks: %s', (_, lockOf) => {
  it.each(RIGHTS)('%s: what is refused is told by its name, and is no loss to another', async (right) => {
    const locks = service();
    const lost: unknown[] = [];
    locks.events$.subscribe((event) => event.type === 'lost' && lost.push(event));
    for (const command of Object.values(COMMANDS)) {
      const lease = await lockOf(locks).acquire();
      await take(right);
      judge(await outcomeOf(command(lease, lockOf(locks))), right);
      await give(right);
      if (command === COMMANDS.forceRelease) break;
      expect(lost).toEqual([]);
      await lease.release();
      await redis.flushall();
    }
    await redis.flushall();
    await take(right);
    // Once more with nobody in the way, and then once more with somebody.
    const first = await outcomeOf(lockOf(locks).acquire({ waitTime: 100 }));
    judge(first, right);
    if (!(first instanceof Error)) judge(await outcomeOf(lockOf(locks).tryAcquire()), right);
    await give(right);
    // What a refused command has left behind ends by itself.
    const left = await redis.keys('*');
    const lives = await Promise.all(left.map((key) => redis.pttl(key)));
    expect(lives.filter((life) => life < 0)).toEqual([]);
    const foreign = logs.lines.filter((line) => !line.includes('Cannot re') && !isOfForce(line));
    expect(foreign).toEqual([]);
  });
});

describe.each(Object.entries(KINDS))('A %s lock that is refused for lack of a right', (_, lockOf) => {
  it.each(RIGHTS)('%s: leaves nothing in the way of another kind', async (right) => {
    const locks = service();
    await take(right);
    const lease = await outcomeOf(lockOf(locks).acquire({ waitTime: 100 }));
    if (!(lease instanceof Error)) await (lease as Lease).release();
    await give(right);
    const left: unknown[] = [];
    for (const [kind, otherOf] of Object.entries(KINDS)) {
      const other = await outcomeOf(otherOf(locks).tryAcquire());
      if (other === null || other instanceof Error) left.push([kind, String(other)]);
      else await (other as Lease).release();
    }
    expect(left).toEqual([]);
  });
});

it.each([
  ['plain', 'hdel'],
  ['multi', 'hdel'],
  ...['fair', 'read', 'write', 'semaphore'].map((kind) => [kind, 'zrem'] as const),
])('A %s lock that could not be given up, without %s, is not taken', async (kind, right) => {
  const locks = service();
  await take(right);
  const refused = await outcomeOf(KINDS[kind]!(locks).acquire({ waitTime: 100 }));
  expect(refused).toBeInstanceOf(Error);
  judge(refused, right);
  expect(await redis.keys('*')).toEqual([]);
  await give(right);
});

describe('Without publish', () => {
  it.each(Object.entries(KINDS))('%s: a waiter polls, and no release fails', async (kind, lockOf) => {
    await take('publish');
    const [one, two] = [service(2_000), service(2_000)];
    const inTheWay = kind === 'read' ? KINDS.write : lockOf;
    const lease = await inTheWay!(one).acquire();
    const waiting = lockOf(two).acquire({ waitTime: 20_000 });
    await until(async () => (await two.health()).waiting === 1);
    await lease.release();
    await (await waiting).release();
    await lockOf(one).acquire();
    expect(await lockOf(two).forceRelease()).toBe(true);
    expect(await lockOf(two).isLocked()).toBe(false);
    expect(logs.lines.filter((line) => !isOfForce(line))).toEqual([]);
    const { status, nodes } = await two.health();
    expect([status, nodes[0]?.error]).toEqual([
      'degraded',
      expect.stringMatching(/cannot send messages of releases.*PUBLISH/),
    ]);
  });
});

it.each(['publish', 'pubsub|numsub'])(
  'Without %s, no holder is asked, and the error names the right',
  async (right) => {
    const [one, two] = [service(), service()];
    await one.using('name', async (lease) => {
      await until(async () => (await two.requestRelease('name')) === 1);
      await take(right);
      const refused = await outcomeOf(two.requestRelease('name'));
      expect(refused).toBeInstanceOf(Error);
      judge(refused, right);
      await give(right);
      expect(lease.held).toBe(true);
    });
  },
);

it('A right that one kind needs costs the renewals of that kind only', async () => {
  const locks = service(2_000);
  const lost: unknown[] = [];
  locks.events$.subscribe((event) => event.type === 'lost' && lost.push(event.name));
  const leases = [await locks.acquire('plain'), await locks.getFairLock('fair').acquire()];
  await take('hexists');
  await until(() => lost.length > 0);
  expect(lost).toEqual(['plain']);
  expect(leases.map(({ held }) => held)).toEqual([false, true]);
  expect(logs.lines).toEqual([
    expect.stringMatching(/^Cannot renew "plain".*HEXISTS/),
    expect.stringMatching(/^Lost the lock "plain".*unreachable/),
  ]);
  await give('hexists');
});

it.each([
  ['plain', 'hset'],
  ['fair', 'zadd'],
])(
  'A %s lock that cannot be taken for a waiter, without %s, is not granted to it by a message',
  async (kind, right) => {
    const lockOf = KINDS[kind]!;
    const [one, two] = [service(), service()];
    const lease = await lockOf(one).acquire();
    const waiting = lockOf(two).acquire({ waitTime: 20_000 });
    let granted = false;
    void waiting.then(() => (granted = true));
    await until(async () => {
      const state = await one.inspect('name');
      return (state?.queue.length ?? 0) + (state?.waiters.processes ?? 0) > 0;
    });
    await take(right);
    await lease.release();
    await sleep(100);
    expect(granted).toBe(false);
    await give(right);
    await (await waiting).release();
  },
);
