import assert from './assert.js';
import { isLockKindMismatchError } from '../../api/error-guards.js';
import { CLAIM } from '../../store/queue-messages.js';
import { words } from '../test-framework.js';
import { hear } from './hearing.js';
import { grantOf, PlainLockStage } from './plain-stage.js';
import { FAIR } from './queue-terms.js';
import { LEASE, sleep, type Stage, tokenOf, until } from './stage.js';

/** Waiters of a plain lock whose processes are dead, and other kinds under the name. */
export function describeDeathsInPlainQueue(stage: Stage): void {
  const { it } = words();

  it('ends a claim that is not confirmed, and grants the lock to a live waiter behind stopped ones', async () => {
    const lock = new PlainLockStage(stage);
    const clients = await Promise.all(['x', 'y', 'claims'].map((client) => hear(stage, client)));
    await lock.take('a:1');
    await lock.stands('x:1', 1);
    await lock.stands('y:1', 2);
    await lock.stands('claims:1', 3);
    await lock.release('a:1');
    const [silent] = clients;
    assert.ok(silent !== undefined);
    await silent.granted('x:1');
    const started = performance.now();
    let reply = await lock.stand('claims:1', 3);
    for (let looks = 0; !reply.granted && looks < 10; looks++) {
      assert.ok(reply.retryAfter <= 1.5 * CLAIM, String(reply.retryAfter));
      await sleep(reply.retryAfter + 1);
      reply = await lock.stand('claims:1', 3);
    }
    assert.ok(reply.granted);
    assert.ok(performance.now() - started < LEASE, 'as long as a lease');
    assert.equal(await lock.release('x:1'), 'taken');
    assert.equal(await lock.holder(), 'claims:1');
    for (const owner of ['y:1', 'claims:1']) await lock.release(owner);
    for (const client of clients) client.close();
    assert.equal(await lock.inspect(), null);
  });

  it('passes over a waiter without a subscription for the plain lock, at once or after a claim', async () => {
    const lock = new PlainLockStage(stage);
    const client = await hear(stage, 'alive');
    await lock.take('a:1');
    await lock.stands('dead:1', 1);
    await lock.stands('alive:1');
    await lock.stands('alive:2');
    await lock.release('a:1');
    const news = () => client.heard.find(({ type }) => type !== 'missed');
    await until(() => news() !== undefined);
    const first = news();
    // A store that cannot know which clients subscribe has let the other owner in, and says until when.
    if (first?.type === 'next') {
      assert.ok(first.within <= CLAIM, String(first.within));
      await until(async () => (await lock.stand('alive:1')).granted);
    } else if (first?.type === 'granted') assert.equal(first.rivals, 'queued');
    assert.equal(await lock.holder(), 'alive:1');
    for (const owner of ['alive:1', 'alive:2']) await lock.release(owner);
    client.close();
    assert.equal(await lock.inspect(), null);
  });

  it('shows the entries of its queue, each with its time', async () => {
    const lock = new PlainLockStage(stage);
    await lock.take('dead:1', 400);
    for (const owner of ['dead:2', 'dead:3']) await lock.stands(owner);
    await lock.isFree();
    const stored = await lock.inspect();
    assert.ok(stored !== null);
    assert.equal(stored.kind, 'lock');
    assert.deepEqual(stored.holders, []);
    assert.equal(stored.listeners, 0);
    assert.deepEqual(
      stored.queue.map(({ owner, mode }) => [owner, mode]),
      [
        ['dead:2', 'exclusive'],
        ['dead:3', 'exclusive'],
      ],
    );
    for (const { since } of stored.queue) assert.ok(Math.abs(since - Date.now()) < 60_000, String(since));
    await sleep(30);
    const later = (await lock.inspect())?.queue ?? [];
    for (const [index, { since }] of stored.queue.entries()) {
      assert.ok(Math.abs((later[index]?.since ?? 0) - since) < 20, 'the entry is as old as before');
    }
    // The release of the first entry may grant the lock to the second.
    assert.equal(await lock.release('dead:2'), 'deleted');
    await lock.release('dead:3');
    assert.equal(await lock.inspect(), null);
  });

  it('takes no waiter for dead whose client hears it, and those that none hears for dead alike', async () => {
    const lock = new PlainLockStage(stage);
    const client = await hear(stage, 'living');
    await lock.take('dead:1');
    for (const owner of ['dead:2', 'living:1', 'dead:3']) await lock.stands(owner);
    const [first, living, last] = (await lock.inspect())?.queue ?? [];
    assert.ok(living !== undefined && living.dead !== true);
    // A store that cannot know says nothing.
    assert.equal(first?.dead ?? false, last?.dead ?? false);
    for (const owner of ['dead:2', 'living:1', 'dead:3', 'dead:1']) await lock.release(owner);
    client.close();
  });

  it('refuses other kinds while its queue has waiters, also without a holder', async () => {
    const lock = new PlainLockStage(stage);
    const client = await hear(stage, 'kinds');
    const { name } = lock;
    await lock.take('dead:1', 300);
    const { arrival } = await lock.stands('kinds:1');
    await lock.stands('kinds:2');
    await lock.isFree();
    const queue = { ...FAIR, entry: undefined, ownWriteHold: undefined };
    const fair = { name, owner: 'a:1', leaseTime: LEASE, queue };
    await assert.rejects(stage.store.acquire(fair), isLockKindMismatchError);
    assert.equal((await grantOf(client, 'kinds:1')).rivals ?? 'queued', 'queued');
    tokenOf(await lock.stand('kinds:1', arrival));
    await assert.rejects(stage.store.acquire(fair), isLockKindMismatchError);
    for (const owner of ['kinds:2', 'kinds:1']) await lock.release(owner);
    tokenOf(await stage.store.acquire(fair));
    await assert.rejects(lock.stand('kinds:2'), isLockKindMismatchError);
    await stage.store.release({ ...fair, queue: FAIR });
    client.close();
    assert.equal(await lock.inspect(), null);
  });

  it('admits another kind where its queue has only dead waiters, after a claim for each at most', async () => {
    const lock = new PlainLockStage(stage);
    await lock.take('dead:1', 400);
    for (const owner of ['dead:2', 'dead:3']) await lock.stands(owner);
    const { name } = lock;
    const queue = { ...FAIR, entry: undefined, ownWriteHold: undefined };
    const fair = { name, owner: 'a:1', leaseTime: LEASE, queue };
    await until(() =>
      stage.store.acquire(fair).then(
        ({ granted }) => granted,
        (error: unknown) => {
          if (isLockKindMismatchError(error)) return false;
          throw error;
        },
      ),
    );
    await stage.store.release({ ...fair, queue: FAIR });
    assert.equal(await lock.inspect(), null);
  });
}
