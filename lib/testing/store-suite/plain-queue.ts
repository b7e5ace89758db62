import assert from './assert.js';
import { isLockKindMismatchError } from '../../api/error-guards.js';
import { CLAIM } from '../../store/queue-messages.js';
import { words } from '../test-framework.js';
import { hear } from './hearing.js';
import { grantOf, grantsOf, PlainLockStage } from './plain-stage.js';
import { FAIR } from './queue-terms.js';
import { LEASE, sleep, type Stage, tokenOf, until } from './stage.js';

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
