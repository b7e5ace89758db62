import assert from './assert.js';
import type { QueueTerms } from '../../store/lock-store.js';
import { words } from '../test-framework.js';
import { hear } from './hearing.js';
import { FAIR, READ, WRITE, SEMAPHORE, STAND, ASK } from './queue-terms.js';
import { LEASE, type Stage, tokenOf, until } from './stage.js';

/** Readers beside each other and behind writers, and the permits of a semaphore. */
export function describeSharedHolds(stage: Stage): void {
  const { it } = words();
  const hearing = (client: string) => hear(stage, client);

  it('admits a reader past a waiting writer only if that is known to be dead, or beside the own write hold', async () => {
    const name = stage.freshName();
    const client = await hearing('b');
    const ask = (owner: string, ownWriteHold?: string) =>
      stage.other.acquire({
        name,
        owner,
        leaseTime: LEASE,
        queue: { ...READ, entry: undefined, ownWriteHold },
      });
    const stand = (owner: string) =>
      stage.other.acquire({ name, owner, leaseTime: LEASE, queue: { ...WRITE, ...STAND } });
    const release = (owner: string, queue: QueueTerms) =>
      stage.store.release({ name, owner, leaseTime: LEASE, queue });
    tokenOf(await ask('a:1'));
    assert.ok(!(await stand('dead:1')).granted);
    const [writer] = (await stage.store.inspect(name))?.queue ?? [];
    // A node of a cluster does not know which writers are dead, although an inspection of all nodes tells.
    const passes = (await ask('a:2')).granted;
    assert.ok(!passes || writer?.dead === true, 'past a writer that may live');
    await release('dead:1', WRITE);
    assert.ok(!(await stand('b:1')).granted);
    assert.ok(!(await ask('a:3')).granted);
    assert.ok(!(await ask('a:4', 'a:3')).granted, 'beside a write hold that is over');
    for (const owner of ['a:1', 'a:2']) await release(owner, READ);
    await client.granted('b:1');
    tokenOf(await ask('b:2', 'b:1'));
    assert.ok(!(await ask('a:5')).granted, 'beside a writer that reads');
    // Sent twice.
    tokenOf(await stage.other.acquire({ name, owner: 'b:1', leaseTime: LEASE, queue: { ...WRITE, ...ASK } }));
    assert.ok(!(await ask('a:5')).granted, 'beside a writer that reads');
    await stage.store.release({ name, owner: 'b:1', leaseTime: LEASE, queue: WRITE, keepFor: LEASE });
    assert.ok(!(await ask('a:5')).granted, 'beside a write hold that is kept');
    assert.ok(await stage.store.forceRelease(name, 'exclusive'));
    tokenOf(await ask('a:5'));
    for (const owner of ['a:5', 'b:2']) await release(owner, READ);
    client.close();
    assert.equal(await stage.store.inspect(name), null);
  });

  it('admits readers together and a writer alone, in the order of arrival', async () => {
    const name = stage.freshName();
    const client = await hearing('b');
    const enter = (owner: string, terms: QueueTerms) =>
      stage.other.acquire({ name, owner, leaseTime: LEASE, queue: { ...terms, ...STAND } });
    assert.ok((await enter('b:1', READ)).granted);
    assert.ok((await enter('b:2', READ)).granted);
    assert.ok(!(await enter('b:3', WRITE)).granted);
    assert.ok(!(await enter('b:4', READ)).granted);
    assert.ok(!(await enter('b:5', READ)).granted);
    const present = await stage.store.inspect(name);
    const modes = (all: readonly { readonly mode: string }[] = []) => all.map(({ mode }) => mode);
    assert.deepEqual(modes(present?.holders), ['shared', 'shared']);
    assert.deepEqual(modes(present?.queue), ['exclusive', 'shared', 'shared']);
    await stage.store.release({ name, owner: 'b:1', queue: READ });
    await stage.store.release({ name, owner: 'b:2', queue: READ });
    await client.granted('b:3');
    assert.equal((await stage.store.inspect(name))?.holders.length, 1);
    // Its own write hold has ended: another owner writes.
    const queue = { ...READ, entry: undefined, ownWriteHold: 'b:9' };
    assert.ok(!(await stage.other.acquire({ name, owner: 'b:6', leaseTime: LEASE, queue })).granted);
    await stage.store.release({ name, owner: 'b:3', queue: WRITE });
    await Promise.all([client.granted('b:4'), client.granted('b:5')]);
    for (const owner of ['b:4', 'b:5']) await stage.store.release({ name, owner, queue: READ });
    client.close();
  });

  it('gives each holder a deadline of its own', async () => {
    const name = stage.freshName();
    const enter = (owner: string, leaseTime: number) =>
      stage.store.acquire({ name, owner, leaseTime, queue: { ...READ, ...ASK } });
    await enter('a:1', LEASE);
    await enter('a:2', 100);
    await until(async () => (await stage.store.inspect(name))?.holders.length === 1);
    const [left] = (await stage.store.inspect(name))?.holders ?? [];
    assert.equal(left?.owner, 'a:1');
    assert.ok(left.remainingTime > LEASE / 2);
    assert.equal(await stage.store.renew([{ name, owner: 'a:2', leaseTime: LEASE }])[0], 'deleted');
    assert.equal(await stage.store.renew([{ name, owner: 'a:1', leaseTime: LEASE }])[0], 'held');
    // Holds of one lock may be in one batch.
    const both = ['a:3', 'a:4'];
    for (const owner of both) await enter(owner, 1_000);
    await Promise.all(stage.store.renew(both.map((owner) => ({ name, owner, leaseTime: LEASE }))));
    const renewed = (await stage.store.inspect(name))?.holders.filter(({ owner }) => both.includes(owner));
    assert.equal(renewed?.length, 2);
    for (const hold of renewed) assert.ok(hold.remainingTime > LEASE / 2, `${hold.owner} was not renewed`);
    for (const owner of ['a:1', ...both]) await stage.store.release({ name, owner, queue: READ });
  });

  it('reports to a late release whether other holders have the lock', async () => {
    const after = async (former: QueueTerms, ...present: QueueTerms[]) => {
      const name = stage.freshName();
      const hold = { name, owner: 'a:1', queue: former };
      await stage.store.acquire({ ...hold, leaseTime: LEASE, queue: { ...former, ...ASK } });
      await stage.other.forceRelease(name);
      for (const [n, terms] of present.entries()) {
        const queue = { ...terms, ...ASK };
        tokenOf(await stage.other.acquire({ name, owner: `b:${String(n)}`, leaseTime: LEASE, queue }));
      }
      const [renewed] = await Promise.all(stage.store.renew([{ ...hold, leaseTime: LEASE }]));
      const released = await stage.store.release(hold);
      assert.equal((await stage.store.inspect(name))?.holders.length ?? 0, present.length);
      await stage.other.forceRelease(name);
      return [released, renewed];
    };
    assert.deepEqual(await after(FAIR), ['deleted', 'deleted']);
    assert.deepEqual(await after(FAIR, FAIR), ['taken', 'taken']);
    assert.deepEqual(await after(READ, WRITE), ['taken', 'taken']);
    assert.equal((await after(WRITE, READ))[0], 'taken');
    assert.deepEqual(await after(READ, READ), ['deleted', 'deleted']);
    assert.deepEqual(await after(SEMAPHORE, SEMAPHORE), ['deleted', 'deleted']);
    assert.equal((await after(SEMAPHORE, SEMAPHORE, SEMAPHORE))[0], 'taken');
  });

  it('counts permits, and refuses another number of them', async () => {
    const name = stage.freshName();
    const enter = (owner: string, capacity = 2) =>
      stage.store.acquire({ name, owner, leaseTime: LEASE, queue: { ...SEMAPHORE, ...ASK, capacity } });
    assert.ok((await enter('a:1')).granted);
    assert.ok((await enter('a:2')).granted);
    assert.ok(!(await enter('a:3')).granted);
    await assert.rejects(enter('a:4', 3), (error: Error) => /3 permits.*2 permits/.test(error.message));
    await stage.store.release({ name, owner: 'a:1', queue: SEMAPHORE });
    assert.ok((await enter('a:3')).granted);
    for (const owner of ['a:2', 'a:3']) await stage.store.release({ name, owner, queue: SEMAPHORE });
  });
}
