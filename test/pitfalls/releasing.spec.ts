/**
 * Releasing. The numbers are those of a list of verified defects of other lock libraries; what is tested is that ours
 * has none of them.
 *
 * 21  Releasing an expired lock takes 2 s of retries and then throws, or never returns.
 * 22  The callback's result is thrown away, or its error replaced, because the release had a problem.
 * 23  A plain DEL that deletes somebody else's lock.
 * 24  The release is retried with a new id, or counts down twice.
 * 25  Shutdown closes clients that the user passed in, or closes Redis before requests in flight have ended.
 * 42  NOSCRIPT after a script flush or a failover makes every release fail until a restart.
 * 81  A failing way of giving a hold up (hand-over, resume) forgets the `minHoldTime` that the release would have kept.
 */
import { describe, expect, it } from '@jest/globals';
import type { LockEvent, LockService } from '../../lib/index.js';
import * as scripts from '../support/scripts.js';
import { loadScripts } from '../world/holds.js';
import { inWorld } from '../world/index.js';
import { Stage, until } from './stage.js';

const stage = Stage.set();

const eventsOf = (locks: LockService) => {
  const events: LockEvent[] = [];
  locks.events$.subscribe((event) => events.push(event));
  return events;
};

describe('the release of a lease', () => {
  it('that is known to have ended sends no command and throws nothing (pitfall 21)', () =>
    inWorld(1, async ({ process, server, now, until }) => {
      const lease = await process().locks.acquire('a', { leaseTime: 200 });
      await until(() => !lease.held);
      const [before, moment] = [server.commands, now()];
      await Promise.all([lease.release(), lease.release()]);
      expect([server.commands, now()]).toEqual([before, moment]);
    }));

  it('whose key is gone asks once, throws nothing and reports the loss (pitfall 21)', async () => {
    const locks = stage.service();
    const events = eventsOf(locks);
    const lease = await locks.acquire('a');
    await stage.redis.del('lock:a');
    await stage.server.resetCommandCalls();
    await lease.release();
    expect(await stage.requests()).toBe(1);
    expect(events.map((event) => event.type)).toEqual(['acquired', 'lost']);
  });

  it('leaves it alone when its own process was stopped for longer than the lease (pitfall 23)', async () => {
    const worker = await stage.worker({ leaseTime: 600 });
    const { id } = await worker.call<{ id: number }>('acquire', 'a');
    worker.freeze();
    const released = worker.call('release', id);
    const { owner } = await stage.service().acquire('a');
    worker.thaw();
    await released;
    expect(await stage.redis.hkeys('lock:a')).toEqual([owner]);
    await worker.stop();
  });

  it('that is sent again after its reply was lost takes nothing from the next holder (pitfall 24)', async () => {
    const proxy = await stage.proxy();
    const locks = stage.service({ connection: proxy.url });
    const events = eventsOf(locks);
    const lease = await locks.acquire('a');
    const monitor = await stage.server.monitor();
    // All connections are there, so that the reply that is cut is that of the release.
    await locks.health();
    proxy.cutAfterReplyBytes(0);
    await lease.release();
    expect(events.at(-1)?.type).toBe('released');
    const next = await locks.acquire('a');
    const releases = () => monitor.commands.filter((command) => command.includes(lease.owner));
    await until(() => releases().length >= 2);
    await monitor.stop();
    expect(await stage.redis.hkeys('lock:a')).toEqual([next.owner]);
    expect(next.held).toBe(true);
  });

  it('counts down once, however often it is called (pitfall 24)', async () => {
    const lock = stage.service().getLock('a');
    await lock.using(async () => {
      const inner = await lock.acquire();
      await Promise.all([inner.release(), inner.release()]);
      await inner.release();
      expect(lock.holdCount()).toBe(1);
      expect(await stage.ttl('a')).toBeGreaterThan(0);
    });
    expect(await stage.ttl('a')).toBe(-2);
  });
});

describe('a callback whose release has a problem', () => {
  const problems: [string, () => unknown][] = [
    ['the store is dead', () => stage.server.kill()],
    [
      'the store is frozen',
      () => {
        stage.server.freeze();
      },
    ],
    ['the lock is gone', () => stage.redis.del('lock:a', 'lock:b')],
    ['the key is something else', () => stage.redis.mset('lock:a', 'no lock', 'lock:b', 'no lock')],
  ];

  it.each(problems)('gives its caller its own result or error: %s (pitfall 22)', async (_, cause) => {
    const locks = stage.service({ leaseTime: 6_000 });
    const error = new Error('of the callback');
    const trouble = until(() => locks.leases().length === 2).then(cause);
    const returns = locks.using('a', async () => {
      await trouble;
      return 'result';
    });
    const throws = locks.using('b', async () => {
      await trouble;
      throw error;
    });
    expect(await Promise.allSettled([returns, throws])).toEqual([
      { status: 'fulfilled', value: 'result' },
      { status: 'rejected', reason: error },
    ]);
  });
});

describe('shutdown', () => {
  it("leaves the application's own client open (pitfall 25)", async () => {
    const client = stage.client();
    const locks = stage.service({ connection: client });
    await locks.using('a', () => undefined);
    await stage.service().acquire('b');
    await expect(locks.acquire('b', { waitTime: 50 })).rejects.toThrow();
    await locks.onApplicationShutdown();
    expect(await client.ping()).toBe('PONG');
  });

  it.each(['known', 'unknown'])(
    'takes back an acquisition that is in flight, while the script of the release is %s to the server (pitfall 25)',
    (release) =>
      inWorld(1, async ({ process, server, until }) => {
        const one = process();
        await one.locks.health();
        await loadScripts(one);
        if (release === 'unknown') {
          // What a server knows after a restart, when locks have been taken but none has been released.
          server.forgetScripts();
          await process().redis().script('LOAD', scripts.acquire.source);
        }
        one.slow('back', 200);
        const refused = expect(one.locks.acquire('a')).rejects.toMatchObject({ code: 'LOCK_CLOSED' });
        await until(() => server.keys.includes('lock:a'));
        await one.locks.onApplicationShutdown();
        await refused;
        expect(server.keys).toEqual([]);
      }),
  );

  it('leaves nothing that keeps the process alive, even when the store is gone (pitfall 25)', async () => {
    const server = await stage.secondServer();
    const worker = await stage.worker({}, server.url);
    await worker.call('forceRelease', 'a');
    server.freeze();
    const waiting = worker.call('acquire', 'a');
    const stopped = worker.stop();
    await expect(waiting).rejects.toMatchObject({ code: 'LOCK_CLOSED' });
    await stopped;
  });
});

describe('scripts that the server has forgotten', () => {
  it('are sent again, whichever is asked for first (pitfall 42)', () =>
    inWorld(1, async ({ process, server, pass }) => {
      const { locks } = process({ leaseTime: 1_500 });
      const lock = locks.getLock('a');
      server.forgetScripts();
      const lease = await lock.acquire();
      server.forgetScripts();
      await lease.extend(5_000);
      server.forgetScripts();
      expect(await locks.inspect('a')).toMatchObject({ holders: [{ owner: lease.owner }] });
      server.forgetScripts();
      await lease.release();
      expect(server.keys).toEqual([]);

      const renewed = await lock.acquire();
      server.forgetScripts();
      await pass(2_000);
      expect(renewed.held).toBe(true);
      server.forgetScripts();
      expect(await locks.forceRelease('a')).toBe(true);
    }));
});

describe.each([
  ['a plain lock', (locks: LockService) => locks.getLock('a')],
  ['a fair lock', (locks: LockService) => locks.getFairLock('a')],
  ['a read lock', (locks: LockService) => locks.getReadWriteLock('a').read],
])('the minHoldTime of %s', (_, lockOf) => {
  const impatient = () => stage.service({ waitTime: 500 });
  const taken = async () => await lockOf(impatient()).acquire({ waitTime: 5_000, minHoldTime: 60_000 });
  /** Nobody has it, and nobody gets it. */
  const isKept = async () => {
    const state = async () => (await stage.service().inspect('a'))?.holders.map(({ owner }) => owner) ?? [];
    await until(async () => (await state()).every((owner) => owner.startsWith('kept:')));
    expect(await state()).toHaveLength(1);
  };

  it('outlives a hand-over that the server refuses (pitfall 81)', async () => {
    const lease = await taken();
    await stage.redis.config('SET', 'min-replicas-to-write', 1);
    await expect(lease.handOver()).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    await stage.redis.config('SET', 'min-replicas-to-write', 0);
    await isKept();
  });

  it.each(['hand-over', 'resume'])(
    'outlives a %s that a stopped server does not answer (pitfall 81)',
    async (what) => {
      const lease = await taken();
      const other = impatient();
      await other.health();
      const ticket = what === 'resume' ? await lease.handOver() : '';
      stage.server.freeze();
      const passed = what === 'resume' ? other.resume(ticket) : lease.handOver();
      await expect(passed).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
      stage.server.thaw();
      await isKept();
    },
  );
});
