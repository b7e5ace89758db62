import assert from './assert.js';
import { CLAIM } from '../../store/queue-messages.js';
import { words } from '../test-framework.js';
import { hear } from './hearing.js';
import { grantOf, grantsOf, PlainLockStage } from './plain-stage.js';
import { LEASE, type Stage, tokenOf, until } from './stage.js';

/**
 * The queue of a plain lock, in which each process has one entry. A message may be late: each test has clients of its own.
 */
export function describePlainQueue(stage: Stage): void {
  const { it } = words();

  it('hands the plain lock over in the order of arrival, each time with a greater token', async () => {
    const lock = new PlainLockStage(stage);
    const client = await hear(stage, 'order');
    let last = await lock.take('a:1');
    const owners = ['order:1', 'order:2', 'order:3'];
    for (const owner of owners) {
      const reply = await lock.stands(owner);
      assert.ok(reply.arrival !== undefined);
      assert.equal(reply.holder, 'a:1');
      assert.ok(reply.retryAfter > 0, String(reply.retryAfter));
    }
    let holder = 'a:1';
    for (const owner of owners) {
      assert.equal(await lock.release(holder), 'released');
      const { fencingToken, grantedAt } = await grantOf(client, owner);
      assert.ok(fencingToken > last, `${String(fencingToken)} after ${String(last)}`);
      assert.ok(grantedAt <= performance.now());
      assert.equal(await lock.holder(), owner);
      last = fencingToken;
      holder = owner;
    }
    await lock.release(holder);
    client.close();
    assert.equal(await lock.inspect(), null);
  });

  it('hands over for the whole lease in the first second of a wait, else for a claim, which a repeated request confirms', async () => {
    const client = await hear(stage, 'lease');
    const left = async (lock: PlainLockStage) => (await lock.inspect())?.holders[0]?.remainingTime ?? 0;
    const handOver = async (owner: string, arrival?: number) => {
      const lock = new PlainLockStage(stage);
      await lock.take('a:1');
      const started = performance.now();
      await lock.stands(owner, arrival, 4 * LEASE);
      await lock.release('a:1');
      return { lock, grant: await grantOf(client, owner), took: performance.now() - started };
    };

    const claim = await handOver('lease:1', 1);
    assert.equal(claim.grant.leaseTime, CLAIM);
    assert.ok((await left(claim.lock)) <= CLAIM);
    assert.ok(tokenOf(await claim.lock.stand('lease:1', 1, 4 * LEASE)) >= claim.grant.fencingToken);
    assert.ok((await left(claim.lock)) > 3 * LEASE);
    assert.deepEqual(await claim.lock.queue(), []);
    await claim.lock.release('lease:1');

    let whole = await handOver('lease:2');
    // Repeats the hand-over if this machine took too long.
    for (let n = 3; whole.took > CLAIM && n < 13; n++) {
      await whole.lock.release(whole.grant.owner);
      whole = await handOver(`lease:${String(n)}`);
    }
    assert.equal(whole.grant.leaseTime, 4 * LEASE);
    assert.ok((await left(whole.lock)) > 3 * LEASE);
    await whole.lock.release(whole.grant.owner);
    client.close();
  });

  it('tells the waiters behind a claim when to look, also where the first of them asks for a short lease', async () => {
    const lock = new PlainLockStage(stage);
    const clients = await Promise.all(['claim', 'short', 'behind'].map((client) => hear(stage, client)));
    const told = () => clients.map(({ heard }) => heard.find(({ type }) => type !== 'missed')?.type);
    await lock.take('a:1');
    await lock.stands('claim:1', 1);
    await lock.stands('short:1', 2, CLAIM / 2);
    await lock.stands('behind:1', 3);
    await lock.release('a:1');
    await until(() => told().every((type) => type !== undefined));
    assert.deepEqual(told(), ['granted', 'next', 'next']);
    for (const owner of ['behind:1', 'claim:1']) await lock.release(owner);
    await lock.release('short:1', { leaseTime: CLAIM / 2 });
    for (const client of clients) client.close();
    assert.equal(await lock.inspect(), null);
  });

  it('hands over with the release of a hold that has ended by itself', async () => {
    const lock = new PlainLockStage(stage);
    const client = await hear(stage, 'ended');
    await lock.take('a:1', 300);
    await lock.stands('ended:1');
    await lock.isFree();
    assert.equal(await lock.release('a:1'), 'deleted');
    assert.ok((await grantOf(client, 'ended:1')).fencingToken > 0);
    await lock.release('ended:1');
    client.close();
    assert.equal(await lock.inspect(), null);
  });

  it('keeps the entry of an owner that asks again, or names its arrival again', async () => {
    const lock = new PlainLockStage(stage);
    const client = await hear(stage, 'again');
    await lock.take('a:1');
    const { arrival } = await lock.stands('again:1');
    await lock.stands('again:2');
    for (const again of [undefined, arrival]) {
      assert.equal((await lock.stands('again:1', again)).arrival, arrival);
      assert.deepEqual(await lock.queue(), ['again:1', 'again:2']);
    }
    assert.equal(await lock.release('again:1'), 'taken');
    assert.deepEqual(await lock.queue(), ['again:2']);
    await lock.stands('again:1', arrival);
    assert.deepEqual(await lock.queue(), ['again:1', 'again:2']);
    for (const owner of ['again:1', 'again:2', 'a:1']) await lock.release(owner);
    client.close();
    assert.equal(await lock.inspect(), null);
  });

  it('only asks, without an entry in the request', async () => {
    const lock = new PlainLockStage(stage);
    await lock.take('a:1');
    const reply = await lock.ask('ask:1');
    assert.ok(!reply.granted && reply.arrival === undefined);
    assert.equal(reply.holder, 'a:1');
    assert.deepEqual(await lock.queue(), []);
    await lock.release('a:1');
  });

  it('goes to an owner that finds it free, leaves no entry of it, and tells the first in the queue of the new end', async () => {
    for (const arrival of ['known', 'unknown']) {
      const lock = new PlainLockStage(stage);
      const client = await hear(stage, arrival);
      // The client subscribes to the queue, so that an entry that it has left behind would not count as an entry of a dead
      // client.
      const finding = await hear(stage, `finds-${arrival}`);
      const finder = `finds-${arrival}:1`;
      // Long enough for three requests on a busy machine.
      await lock.take('dead:1', 600);
      const own = (await lock.stands(finder, undefined, 2_000)).arrival;
      await lock.stands(`${arrival}:1`);
      await lock.isFree();
      assert.deepEqual(await lock.queue(), [finder, `${arrival}:1`]);
      tokenOf(await lock.stand(finder, arrival === 'known' ? own : undefined, 2_000));
      assert.deepEqual(await lock.queue(), [`${arrival}:1`]);
      const told = () => client.heard.find(({ type }) => type === 'next');
      await until(() => told() !== undefined);
      const message = told();
      assert.ok(message?.type === 'next' && message.owner === `${arrival}:1`);
      assert.ok(message.within > 0 && message.within <= 2_000, String(message.within));
      await lock.release(finder, { leaseTime: 2_000 });
      await client.granted(`${arrival}:1`);
      await lock.release(`${arrival}:1`);
      client.close();
      finding.close();
      assert.equal(await lock.inspect(), null);
    }
  });

  it('stays taken for the time in its release, and the first in the queue is told so', async () => {
    const lock = new PlainLockStage(stage);
    const client = await hear(stage, 'kept');
    await lock.take('a:1', 4 * LEASE);
    const { arrival } = await lock.stands('kept:1');
    const before = performance.now();
    assert.equal(await lock.release('a:1', { keepFor: 300 }), 'released');
    const told = () => client.heard.find(({ type }) => type === 'next');
    await until(() => told() !== undefined);
    const message = told();
    assert.ok(message?.type === 'next' && message.within <= 300);
    await until(async () => (await lock.stand('kept:1', arrival)).granted);
    assert.ok(performance.now() - before >= 299, 'granted too soon');
    assert.deepEqual(grantsOf(client, 'kept:1'), []);
    await lock.release('kept:1');
    client.close();
    assert.equal(await lock.inspect(), null);
  });

  it('is handed over by a forced release, and its holder is told', async () => {
    const lock = new PlainLockStage(stage);
    const client = await hear(stage, 'forced');
    const last = await lock.take('forced:1');
    await lock.stands('forced:2');
    assert.equal(await stage.store.forceRelease(lock.name), true);
    assert.ok((await grantOf(client, 'forced:2')).fencingToken > last);
    await until(() => client.heard.some(({ type, owner }) => type === 'lost' && owner === 'forced:1'));
    assert.equal(await lock.holder(), 'forced:2');
    await lock.release('forced:2');
    client.close();
    assert.equal(await lock.inspect(), null);
  });

  it('leaves subscribers to its release their share, and reports it', async () => {
    const name = stage.freshName();
    const client = await hear(stage, 'shares');
    let woken = 0;
    const outsider = await stage.other.subscribeToReleases(name, () => woken++);
    const outcomes = { left: 0, handedOver: 0 };
    // Chance decides which releases leave the lock to the waiters outside of the queue.
    for (let n = 0; n < 100 && Math.min(outcomes.left, outcomes.handedOver) === 0; n++) {
      const lock = new PlainLockStage(stage, name);
      const [holder, waiter] = [`a:${String(n)}`, `shares:${String(n)}`];
      await lock.take(holder);
      const { arrival } = await lock.stands(waiter);
      woken = 0;
      await lock.release(holder);
      const told = () => client.heard.find(({ type, owner }) => type !== 'missed' && owner === waiter);
      await until(() => told() !== undefined);
      const message = told();
      if (message?.type === 'next') {
        outcomes.left++;
        assert.equal(message.listen, true);
        assert.ok(message.within < CLAIM, String(message.within));
        await until(() => woken > 0);
        assert.equal(await lock.holder(), undefined);
        await lock.take('outsider:1');
        await lock.release('outsider:1');
        await lock.release(waiter);
        // The release may have been a hand-over to the waiter.
        if ((await lock.holder()) !== undefined) await lock.release(waiter);
      } else if (message?.type === 'granted') {
        outcomes.handedOver++;
        assert.equal(message.rivals, 'outside');
        assert.equal(await lock.holder(), waiter);
        await lock.release(waiter);
      }
      assert.deepEqual(await lock.queue(), [], String(arrival));
    }
    assert.ok(Math.min(outcomes.left, outcomes.handedOver) > 0, JSON.stringify(outcomes));
    outsider.close();
    client.close();
  });
}
