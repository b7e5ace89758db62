import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import {
  isLockUnavailableError,
  LockConfigError,
  LockService,
  LockUnavailableError,
  type Lock,
  type LockModuleOptions,
} from '../../../../lib/index.js';
import { TestEnvironment } from '../../../support/test-environment.js';
import { until } from '../../../scenarios/until.js';
import type { RedisServer } from '../../../support/redis-server.js';
import { MASTER_ARGS, startReplica } from '../../../support/replicas.js';
import { lockKeys } from '../../../support/keys.js';
import { TcpProxy } from '../../../support/tcp-proxy.js';
import { serverOfEach } from '../../../support/test-servers.js';

/** ms; a command has two seconds then, and WAIT half of one. */
const LEASE = 12_000;
/** For what replicas confirm: a busy machine takes its time. */
const PATIENT = { replication: { replicas: 1, timeout: 1_500 } };
/** With a lease that nothing of a test outlasts. */
const LASTING = { leaseTime: 300_000, ...PATIENT };

describe('replication', () => {
  const environment = TestEnvironment.ofEach();
  const master = serverOfEach({ args: MASTER_ARGS });
  let replica: RedisServer;

  beforeEach(async () => {
    replica = await startReplica(master);
    environment.add(() => replica.stop());
  });

  const service = (options: Partial<LockModuleOptions> = {}): LockService =>
    environment.service({
      connection: master.url,
      leaseTime: LEASE,
      waitTime: 2_000,
      replication: { replicas: 1 },
      ...options,
    });

  /** A plain lock, a queue with one holder and one with several, and several locks: each is acquired by commands of its own. */
  const KINDS: [string, (locks: LockService) => Lock][] = [
    ['plain lock', (locks) => locks.getLock('key')],
    ['fair lock', (locks) => locks.getFairLock('key')],
    ['semaphore', (locks) => locks.getSemaphore('key', 2)],
    ['multi-lock', (locks) => locks.getMultiLock([locks.getLock('key'), locks.getLock('other')])],
  ];

  /** As a failover does, when the master is gone for good. */
  const holdersAfterFailover = async (): Promise<string[]> => {
    await master.kill();
    await replica.client().replicaof('NO', 'ONE');
    const state = await environment.service({ connection: replica.url }).inspect('key');
    return state?.holders.map(({ owner }) => owner) ?? [];
  };

  it.each(KINDS)('a %s that was acquired is on the replica', async (_, lockOf) => {
    const locks = service(PATIENT);
    for (let n = 0; n < 20; n++) {
      await lockOf(locks).using(async ({ owner }) => {
        const found = await Promise.all(
          ['hgetall', 'zrange'].map((command) =>
            replica
              .client()
              .call(command, 'lock:key', ...(command === 'zrange' ? ['0', '-1'] : []))
              .catch(() => []),
          ),
        );
        expect(JSON.stringify(found)).toContain(owner.split(',')[0]);
      });
    }
  });

  it.each(KINDS)('a %s is not acquired while no replica is connected', async (_, lockOf) => {
    await (await lockOf(service(PATIENT)).acquire()).release();
    const locks = service();
    await replica.client().replicaof('NO', 'ONE');
    const asked = performance.now();
    await expect(lockOf(locks).acquire()).rejects.toThrow(LockUnavailableError);
    expect(performance.now() - asked).toBeGreaterThan(1_990);
    await expect(lockOf(locks).tryAcquire()).rejects.toMatchObject({
      code: 'LOCK_UNAVAILABLE',
      cause: { name: 'TooFewReplicas', message: expect.stringContaining('0 of 1') },
    });
    await until(async () => (await locks.inspect('key')) === null);
  });

  it('a connection on which WAIT is held back is not taken for one that was dropped while it was idle', async () => {
    const proxy = await TcpProxy.start(master.port);
    environment.add(() => proxy.stop());
    const replication = { replicas: 1, timeout: 1_200 };
    const locks = service({ connection: proxy.url, replication });
    const events: string[] = [];
    locks.events$.subscribe(({ type }) => events.push(type));
    await (await locks.acquire('key')).release();
    replica.freeze();
    // The acquisition takes so long that the connection counts as idle when WAIT follows it.
    proxy.replyDelay(400);
    await sleep(500);
    await expect(locks.tryAcquire('key')).rejects.toMatchObject({ cause: { name: 'TooFewReplicas' } });
    replica.thaw();
    proxy.replyDelay(0);
    expect(events).not.toContain('disconnected');
  });

  it.each(KINDS)('a %s is taken back at once where WAIT is refused', async (_, lockOf) => {
    await master.client().acl('SETUSER', 'locks', 'on', '>word', '~*', '&*', '+@all', '-wait');
    const connection = `redis://locks:word@127.0.0.1:${String(master.port)}`;
    const locks = service({ connection, leaseTime: 300_000 });
    await expect(lockOf(locks).tryAcquire()).rejects.toMatchObject({
      effect: 'unknown',
      permanent: true,
      cause: { message: expect.stringContaining("'wait'") },
    });
    await until(async () => (await lockKeys(master.client())).length === 0);
    await master.client().acl('SETUSER', 'locks', '+wait');
    await (await lockOf(locks).acquire()).release();
  });

  it('what was granted and has no connection to be confirmed over is taken back', async () => {
    const proxy = await TcpProxy.start(master.port);
    const client = new Redis(proxy.url, { autoResendUnfulfilledCommands: false });
    client.on('error', () => undefined);
    environment.add(() => {
      client.disconnect();
      return proxy.stop();
    });
    const locks = service({ connection: client, leaseTime: 300_000, ...PATIENT });
    await (await locks.acquire('before')).release();
    replica.freeze();
    // The answer to the second one comes after that to the first, and its WAIT after the WAIT of the first.
    const attempts: Promise<unknown>[] = [];
    for (const name of ['first', 'second']) {
      client.blpop('nothing', 0.2).catch(() => undefined);
      attempts.push(locks.tryAcquire(name).catch((error: unknown) => error));
      await sleep(50);
    }
    const errors = Promise.all(attempts);
    await until(async () => String(await master.client().client('LIST')).includes('cmd=wait'));
    await sleep(100);
    proxy.refuse(true);
    proxy.cut();
    expect(await errors).toMatchObject([{ effect: 'unknown' }, { effect: 'unknown' }]);
    proxy.refuse(false);
    await until(async () => (await lockKeys(master.client())).length === 0);
    replica.thaw();
  });

  it.each(KINDS)(
    'a %s waits for a replica that is late, as long as its wait time allows',
    async (_, lockOf) => {
      const locks = service({ leaseTime: 300_000 });
      replica.freeze();
      const waiting = lockOf(locks).acquire({ waitTime: 60_000 });
      expect(await Promise.race([waiting, sleep(1_000, 'nothing')])).toBe('nothing');
      replica.thaw();
      await waiting;
      // Of several locks, any may have been taken first, and that decides the order in the owner of the multi-lock.
      const owners = locks.leases().flatMap(({ name, owner }) => (name === 'key' ? owner : []));
      expect(owners).toHaveLength(1);
      expect(await holdersAfterFailover()).toEqual(owners);
    },
  );

  it('asks the replicas once for a busy answer that is the last word, and once for many grants', async () => {
    const [one, two] = [service(LASTING), service(LASTING)];
    const lease = await one.acquire('key');
    await master.resetCommandCalls();
    for (let n = 0; n < 5; n++) expect(await two.tryAcquire('key')).toBeNull();
    expect((await master.commandCalls()).wait).toBe(5);
    await lease.release();
    const leases = await Promise.all(Array.from({ length: 100 }, (_, n) => one.acquire(`many:${String(n)}`)));
    expect((await master.commandCalls()).wait).toBeLessThan(25);
    await Promise.all(leases.map((each) => each.release()));
  });

  it('what replicas have confirmed is no proof that they are there later: a wait ends as unavailable', async () => {
    const [one, two] = [service(LASTING), service({ leaseTime: 300_000 })];
    const [, other] = [await one.acquire('key'), await one.acquire('other')];
    // It hears messages from now on, so that its next wait has an entry in the queue.
    const turn = two.acquire('other', { waitTime: 60_000 });
    await until(async () => (await one.inspect('other'))?.waiters.processes === 1);
    await other.release();
    await (await turn).release();
    replica.freeze();
    await expect(two.acquire('key', { waitTime: 4_000 })).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    replica.thaw();
  });

  describe.each(KINDS.slice(0, 2))('a %s that another process hands over', (_, lockOf) => {
    it('is acquired only when it is on the replica', async () => {
      const [one, two] = [service(LASTING), service({ leaseTime: 300_000 })];
      const lease = await lockOf(one).acquire();
      const waiting = lockOf(two).acquire({ waitTime: 60_000 });
      await until(async () => {
        const state = await one.inspect('key');
        return state?.waiters.processes === 1 || state?.queue.length === 1;
      });
      replica.freeze();
      await lease.release();
      expect(await Promise.race([waiting, sleep(1_500, 'nothing')])).toBe('nothing');
      replica.thaw();
      const next = await waiting;
      expect(await holdersAfterFailover()).toEqual([next.owner]);
    });
  });

  it('a renewal counts only when it is on the replica: no holder believes in more than the next master knows', async () => {
    const locks = service(PATIENT);
    const leases = await Promise.all(['a', 'b'].map((name) => locks.acquire(name)));
    const granted = performance.now();
    replica.freeze();
    let least = LEASE;
    await until(async () => {
      const left = await master.client().pttl('lock:a');
      least = Math.min(least, left);
      return left > least; // now the master has renewed it
    });
    const left = LEASE - (performance.now() - granted);
    for (const lease of leases) expect(lease.remainingTime()).toBeLessThanOrEqual(Math.max(0, left));
    await until(() => leases.every((lease) => !lease.held));
    for (const { signal } of leases) expect(signal.reason).toMatchObject({ reason: 'unreachable' });
    replica.thaw();
    // What the master has kept is given back.
    await until(async () => (await lockKeys(master.client())).length === 0);
  });

  it('an extension that changes nothing is written all the same: WAIT waits for what its own connection wrote', async () => {
    const lease = await service(PATIENT).acquire('key', { leaseTime: 60_000 });
    const changes = async () =>
      Number(/rdb_changes_since_last_save:(\d+)/.exec(await master.client().info('persistence'))?.[1]);
    const before = await changes();
    await lease.extend(1_000);
    expect(await changes()).toBeGreaterThan(before);
    expect(await master.client().pttl('lock:key')).toBeGreaterThan(1_000);
  });

  it('a connection that was lost after the command confirms nothing', async () => {
    // A client with the defaults of ioredis sends WAIT again. The next connection has nothing of its own to wait for.
    const client = environment.client(new Redis(master.url));
    const locks = service({ connection: client, replication: { replicas: 1, timeout: 400 } });
    await (await locks.acquire('warm')).release();
    replica.freeze();
    const attempt = locks.tryAcquire('key').catch((reason: unknown) => reason);
    await until(async () => String(await master.client().client('LIST')).includes('cmd=wait'));
    await master.client().call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    replica.thaw();
    expect(isLockUnavailableError(await attempt)).toBe(true);
    await until(async () => (await master.client().exists('lock:key')) === 0);
  });
});

describe('replication at boot', () => {
  it.each([
    ['replicas: 0', { replication: { replicas: 0 } }, /replication\.replicas.*whole number from 1.*0/],
    ['replicas: 1.5', { replication: { replicas: 1.5 } }, /replication\.replicas/],
    ['replicas: none', { replication: {} as never }, /replication\.replicas.*undefined/],
    ['a number', { replication: 1 as never }, /replication.*must be \{ replicas, timeout \}/],
    ['timeout: 0', { replication: { replicas: 1, timeout: 0 } }, /replication\.timeout.*from 1 to/],
    ['timeout: Infinity', { replication: { replicas: 1, timeout: Infinity } }, /replication\.timeout/],
    [
      "a timeout as long as a command's",
      { replication: { replicas: 1, timeout: 2_000 } },
      /shorter than a command's 2000 ms/,
    ],
    [
      'a memory store',
      { connection: undefined, store: 'memory' as const, replication: { replicas: 1 } },
      /goes with connection/,
    ],
  ])('is refused at boot with %s', (_, options, message) => {
    const make = () =>
      new LockService({
        connection: 'redis://localhost:1',
        leaseTime: LEASE,
        ...options,
      });
    expect(make).toThrow(LockConfigError);
    expect(make).toThrow(message);
  });
});
