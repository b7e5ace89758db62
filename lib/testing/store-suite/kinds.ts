import assert from './assert.js';
import { isLockKindMismatchError } from '../../api/error-guards.js';
import { words } from '../test-framework.js';
import { hear } from './hearing.js';
import { FAIR, READ, WRITE, SEMAPHORE, STAND, ASK } from './queue-terms.js';
import { LEASE, type Stage, tokenOf, until } from './stage.js';

/** One name is one kind of lock at a time, also after another kind. */
export function describeKinds(stage: Stage): void {
  const { it } = words();
  const hearing = (client: string) => hear(stage, client);

  it('remembers kind and token while the lock has any holder', async () => {
    const name = stage.freshName();
    const read = (owner: string, leaseTime: number) =>
      stage.store.acquire({ name, owner, leaseTime, queue: { ...READ, ...ASK } });
    await read('a:1', LEASE);
    const last = tokenOf(await read('a:2', 100));
    await read('a:3', 100);
    await stage.store.release({ name, owner: 'a:3', queue: READ });
    await until(async () => (await stage.store.inspect(name))?.holders.length === 1);
    const semaphore = stage.other.acquire({
      name,
      owner: 'b:1',
      leaseTime: LEASE,
      queue: { ...SEMAPHORE, ...ASK },
    });
    await assert.rejects(semaphore, isLockKindMismatchError);
    assert.ok(tokenOf(await read('a:4', LEASE)) > last);
    for (const owner of ['a:1', 'a:4']) await stage.store.release({ name, owner, queue: READ });
  });

  it('is one kind per name, the plain lock included', async () => {
    const name = stage.freshName();
    const fair = { name, owner: 'a:1', leaseTime: LEASE, queue: { ...FAIR, ...ASK } };
    const write = { name, owner: 'b:1', leaseTime: LEASE, queue: { ...WRITE, ...ASK } };
    const plain = { name, owner: 'b:1', leaseTime: LEASE };
    await stage.store.acquire(fair);
    await assert.rejects(stage.store.acquire(write), isLockKindMismatchError);
    await assert.rejects(stage.store.acquire(plain), isLockKindMismatchError);
    await stage.store.release({ ...fair, queue: FAIR });
    await stage.store.acquire(plain);
    await assert.rejects(stage.store.acquire(fair), isLockKindMismatchError);
    await stage.store.release(plain);
    assert.ok((await stage.store.acquire(write)).granted);
    await stage.store.release({ ...write, queue: WRITE });
  });

  it('takes none of several plain locks when one of the names is a lock of another kind', async () => {
    // Names of one location: if hash tags decide, these names share one.
    const tag = stage.freshName();
    const [free, fair] = [`{${tag}}:1`, `{${tag}}:2`];
    await stage.other.acquire({ name: fair, owner: 'b:1', leaseTime: LEASE, queue: { ...FAIR, ...ASK } });
    for (const names of [
      [free, fair],
      [fair, free],
    ]) {
      const taken = stage.store.acquireAll({ names, owner: 'a:1', leaseTime: LEASE });
      await assert.rejects(taken, isLockKindMismatchError);
      assert.equal(await stage.other.inspect(free), null);
    }
    assert.equal(await stage.other.release({ name: fair, owner: 'b:1', queue: FAIR }), 'released');
  });

  it('gives a token beyond those of local hand-offs of a plain lock before', async () => {
    const name = stage.freshName();
    const far = (Date.now() + 3_600_000) * 1_000;
    const plain = { name, owner: 'a:1', leaseTime: LEASE };
    const last = tokenOf(await stage.store.acquire({ ...plain, leastToken: far }));
    await stage.other.forceRelease(name);
    const fair = { name, owner: 'b:1', leaseTime: LEASE, queue: { ...FAIR, ...ASK } };
    assert.ok(tokenOf(await stage.other.acquire(fair)) >= last + 1_000);
    await stage.other.release(fair);
  });

  it('refuses other kinds while the queue has waiters, also without a holder', async () => {
    const name = stage.freshName();
    const client = await hearing('b');
    const fair = (owner: string, leaseTime = LEASE) => ({ name, owner, leaseTime });
    await stage.store.acquire({ ...fair('dead:1', 100), queue: { ...FAIR, ...ASK } });
    const waiter = { ...fair('b:1'), queue: { ...FAIR, ...STAND } };
    assert.ok(!(await stage.other.acquire(waiter)).granted);
    await until(async () => (await stage.store.inspect(name))?.holders.length === 0);
    const plain = { name, owner: 'a:1', leaseTime: LEASE };
    await assert.rejects(stage.store.acquire(plain), isLockKindMismatchError);
    await assert.rejects(stage.store.acquireAll({ ...plain, names: [name] }), isLockKindMismatchError);
    const semaphore = stage.store.acquire({ ...plain, queue: { ...SEMAPHORE, ...ASK } });
    await assert.rejects(semaphore, isLockKindMismatchError);
    assert.ok((await stage.other.acquire(waiter)).granted);
    await stage.other.release({ name, owner: 'b:1', queue: FAIR });
    client.close();
    assert.ok((await stage.store.acquire(plain)).granted);
    await stage.store.release(plain);
    assert.equal(await stage.store.inspect(name), null);
  });

  it('admits another kind where the queue has only dead waiters, in as many steps as there are', async () => {
    // Names of one location: if hash tags decide, these names share one.
    const tag = stage.freshName();
    const [name, second] = [`{${tag}}:1`, `{${tag}}:2`];
    for (const each of [name, second]) {
      for (const owner of ['dead:1', 'dead:2']) {
        const queue = { ...FAIR, ...STAND };
        await stage.store.acquire({ name: each, owner, leaseTime: 100, queue });
      }
    }
    const plain = { name, owner: 'a:1', leaseTime: LEASE };
    const entered = (reply: Promise<{ granted: boolean }>) =>
      reply.then(
        ({ granted }) => granted,
        (error: unknown) => {
          if (isLockKindMismatchError(error)) return false;
          throw error;
        },
      );
    await until(() => entered(stage.store.acquireAll({ ...plain, names: [name, second] })));
    for (const each of [name, second]) {
      assert.equal((await stage.store.inspect(each))?.kind, 'lock');
      await stage.store.release({ ...plain, name: each });
    }
  });
}
