/**
 * Names, options and replies. The numbers are those of a list of verified defects of lock libraries; what is tested is
 * that ours does not have them.
 *
 * 43  Derived keys, such as the turn and the queue of a name, that are another lock's key.
 * 45  Any reply that is no error counts as a grant: `QUEUED` inside of MULTI.
 * 50  A number that options admit overflows a timer (2^31 ms) somewhere below.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { createStore } from '../support/store.js';
import { Stage, until } from './stage.js';

const stage = Stage.set();

describe('What lies beside a lock (pitfall 43)', () => {
  it.each(['fence', 'queue'])('is no other lock, be its name that of a %s', async (role) => {
    const [name, beside] = ['game:{7}', `game:{7}:${role}`];
    const locks = stage.service();
    const lease = await locks.acquire(beside);

    // The fence of the first is written, and its queue made.
    const store = createStore({ connection: stage.server.url }, { keyPrefix: 'lock:', leaseTime: 30_000 });
    const holder = { name, owner: 'holder:1', leaseTime: 30_000 };
    await store.acquire(holder);
    const request = { names: [name, beside], owner: 'asker:1', leaseTime: 30_000 };
    expect(await store.acquireAll(request)).toMatchObject({ granted: false, name });
    await store.release(holder);
    await store.close();
    const fair = locks.getFairLock(name);
    const first = await fair.acquire();
    const second = fair.acquire();
    await until(async () => (await locks.inspect(name))?.queue.length === 1);

    expect(await stage.redis.hkeys(`lock:${beside}`)).toEqual([lease.owner]);
    expect(await stage.service().tryAcquire(beside)).toBeNull();
    await first.release();
    await (await second).release();
    await lease.release();
  });

  it('belongs to one lock, although two names have one hash tag', async () => {
    const [one, other] = ['a', '{a}'].map((name) => stage.service({ keyPrefix: '' }).getFairLock(name));
    const first = await one!.acquire();
    const second = await other!.acquire();
    const waiting = other!.acquire();
    await until(async () => (await stage.service({ keyPrefix: '' }).inspect('{a}'))?.queue.length === 1);
    await first.release();
    await sleep(200);
    expect(second.held).toBe(true);
    expect(await stage.redis.zcard('{a}')).toBe(1);
    let served = false;
    void waiting.then(() => (served = true));
    await sleep(200);
    expect(served).toBe(false);
    await second.release();
    await (await waiting).release();
  });

  it('is one for two services that divide the prefix differently between the client and the module', async () => {
    const client = { host: '127.0.0.1', port: stage.server.port, keyPrefix: 'app:' };
    const one = stage.service({ connection: client }).getFairLock('a');
    const other = stage.service({ keyPrefix: 'app:lock:' }).getFairLock('a');
    const first = await one.acquire();
    // A waiter that is not woken gives up before the lease ends.
    const waiting = other.acquire();
    await until(async () => (await stage.redis.keys('*queue*')).length === 1);
    await first.release();
    const second = await waiting;
    expect(second.fencingToken).toBeGreaterThan(first.fencingToken);
    await second.release();
  });
});

it('takes no QUEUED of a transaction for a grant (pitfall 45)', async () => {
  const shared = stage.client();
  const locks = stage.service({ connection: shared });
  await (await locks.acquire('a')).release();
  await shared.multi({ pipeline: false });
  await expect(locks.acquire('a', { waitTime: 50 })).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
  expect(locks.leases()).toEqual([]);
  await shared.exec();
  await until(async () => (await stage.redis.exists('lock:a')) === 0);
});

it('takes a lease that is longer than three timers (pitfall 50)', async () => {
  const locks = stage.service({ leaseTime: 6_500_000_000 });
  const lease = await locks.acquire('a', { waitTime: 2_000 });
  await sleep(50);
  await lease.extend(7_000_000_000);
  expect(lease.remainingTime()).toBeGreaterThan(6_900_000_000);
  await lease.release();
});
