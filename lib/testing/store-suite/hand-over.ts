import assert from './assert.js';
import { words } from '../test-framework.js';
import { hear } from './hearing.js';
import { CLAIM } from '../../store/queue-messages.js';
import { grantOf, grantsOf, PlainLockStage } from './plain-stage.js';
import { LEASE, sleep, type Stage, tokenOf, until } from './stage.js';

/** The behaviour of a store that can release a plain lock and add an entry to its queue in one step. */
export function describeHandOver(stage: Stage): void {
  const { it } = words();
  it('grants at once where the queue is empty, also when it is sent twice', async () => {
    const lock = new PlainLockStage(stage);
    const client = await hear(stage, 'alone');
    const token = await lock.take('a:1');
    // Further than the clock gets in the meantime.
    const fencingToken = token + 60_000_000;
    const reply = await lock.handOver('a:1', 'alone:2', { fencingToken });
    if (reply === undefined) return;
    assert.equal(reply.released, 'released');
    assert.ok(tokenOf(reply.next) > fencingToken);
    assert.ok(reply.next.granted && (reply.next.rivals ?? 'none') === 'none');
    assert.equal(await lock.holder(), 'alone:2');
    const left = (await lock.inspect())?.holders[0]?.remainingTime ?? 0;
    assert.ok(left > LEASE / 2 && left <= LEASE, String(left));

    await lock.stands('alone:3');
    const again = await lock.handOver('a:1', 'alone:2', { fencingToken });
    assert.equal(again?.released, 'taken');
    assert.ok(tokenOf(again.next) >= tokenOf(reply.next));
    assert.ok(again.next.granted && (again.next.rivals ?? 'queued') === 'queued');
    await lock.release('alone:3');
    assert.equal(await lock.holder(), 'alone:2');
    assert.deepEqual(await lock.queue(), []);
    await sleep(20);
    assert.deepEqual(grantsOf(client, 'alone:2'), [], 'the answer is enough');
    assert.equal(await lock.release('alone:2'), 'released');
    client.close();
    assert.equal(await lock.inspect(), null);
  });

  it('grants the lock to the waiters in the queue, and takes one entry behind them, also when it is sent twice', async () => {
    const lock = new PlainLockStage(stage);
    const client = await hear(stage, 'behind');
    await lock.take('a:1');
    await lock.stands('behind:1');
    await lock.stands('behind:3');
    const reply = await lock.handOver('a:1', 'behind:2');
    if (reply !== undefined) {
      assert.equal(reply.released, 'released');
      assert.ok(!reply.next.granted && reply.next.arrival !== undefined);
      assert.equal(reply.next.holder, 'behind:1');
      assert.notEqual(reply.next.listen, true, 'the hold in the way is handed over');
      assert.ok(reply.next.retryAfter > 0, String(reply.next.retryAfter));
      await client.granted('behind:1');
      const again = await lock.handOver('a:1', 'behind:2');
      assert.equal(again?.released, 'taken');
      assert.ok(!again.next.granted);
      assert.equal(again.next.arrival, reply.next.arrival);
      assert.deepEqual(await lock.queue(), ['behind:3', 'behind:2']);
      assert.equal((await lock.stands('behind:2', reply.next.arrival)).arrival, reply.next.arrival);
      await lock.release('behind:1');
      await client.granted('behind:3');
      await lock.release('behind:3');
      await client.granted('behind:2');
      assert.equal(await lock.release('behind:2'), 'released');
    }
    for (const owner of ['behind:1', 'behind:3', 'a:1']) await lock.release(owner);
    client.close();
    assert.equal(await lock.inspect(), null);
  });

  it('makes a claim of the next owner a whole lease where it is sent twice, and shortens no lease', async () => {
    const lock = new PlainLockStage(stage);
    const client = await hear(stage, 'again');
    await lock.take('a:1');
    await lock.stands('again:1');
    const reply = await lock.handOver('a:1', 'again:2');
    if (reply !== undefined) {
      await client.granted('again:1');
      await sleep(CLAIM + 50);
      await lock.release('again:1');
      const claim = await grantOf(client, 'again:2');
      assert.equal(claim.leaseTime, CLAIM);
      const again = await lock.handOver('a:1', 'again:2');
      assert.ok(again?.next.granted === true);
      const left = (await lock.inspect())?.holders[0]?.remainingTime ?? 0;
      assert.ok(left > LEASE / 2, String(left));
      await lock.handOver('a:1', 'again:2', { leaseTime: CLAIM });
      const still = (await lock.inspect())?.holders[0]?.remainingTime ?? 0;
      assert.ok(still > LEASE / 2, String(still));
      await lock.release('again:2');
    }
    for (const owner of ['again:1', 'a:1']) await lock.release(owner);
    client.close();
    assert.equal(await lock.inspect(), null);
  });

  it('grants a whole lease behind a dead waiter that has arrived before the clock was set back', async () => {
    const lock = new PlainLockStage(stage);
    await lock.take('a:1');
    await lock.stands('dead:1', (Date.now() + 60_000) * 1_000);
    const client = await hear(stage, 'living');
    const reply = await lock.handOver('a:1', 'living:2');
    // A store that does not know which waiters are dead gives this one a claim.
    if (reply?.next.granted === true) {
      const left = (await lock.inspect())?.holders[0]?.remainingTime ?? 0;
      assert.ok(left > LEASE / 2, String(left));
    }
    for (const owner of ['dead:1', 'living:2', 'a:1']) await lock.release(owner);
    client.close();
    assert.equal(await lock.inspect(), null);
  });

  it('reports a hold that was gone, and still takes the entry', async () => {
    const client = await hear(stage, 'gone');
    const free = new PlainLockStage(stage);
    const reply = await free.handOver('a:1', 'gone:2');
    if (reply === undefined) {
      client.close();
      return;
    }
    assert.equal(reply.released, 'deleted');
    tokenOf(reply.next);
    assert.equal(await free.release('gone:2'), 'released');
    assert.equal(await free.inspect(), null);

    const taken = new PlainLockStage(stage);
    await taken.take('c:1');
    const late = await taken.handOver('a:1', 'gone:2');
    assert.equal(late?.released, 'taken');
    assert.ok(!late.next.granted && late.next.holder === 'c:1');
    assert.equal(await taken.holder(), 'c:1');
    assert.deepEqual(await taken.queue(), ['gone:2']);
    await taken.release('c:1');
    await client.granted('gone:2');
    await taken.release('gone:2');
    client.close();
    assert.equal(await taken.inspect(), null);
  });

  it('keeps the lock from the next owner for the time in the release', async () => {
    const lock = new PlainLockStage(stage);
    const client = await hear(stage, 'keeping');
    await lock.take('a:1');
    const before = performance.now();
    const reply = await lock.handOver('a:1', 'keeping:2', { keepFor: 300 });
    if (reply !== undefined) {
      assert.equal(reply.released, 'released');
      assert.ok(!reply.next.granted);
      assert.ok(reply.next.retryAfter <= 300, String(reply.next.retryAfter));
      const { arrival } = reply.next;
      await until(async () => (await lock.stand('keeping:2', arrival)).granted);
      assert.ok(performance.now() - before >= 299, 'granted too soon');
      await lock.release('keeping:2');
    }
    await lock.release('a:1');
    client.close();
    assert.equal(await lock.inspect(), null);
  });
}
