import assert from './assert.js';
import type { QueueTerms } from '../../store/lock-store.js';
import { CLAIM } from '../../store/queue-messages.js';
import { words } from '../test-framework.js';
import { hear } from './hearing.js';
import { FAIR, READ, WRITE, SEMAPHORE, STAND, ASK } from './queue-terms.js';
import { LEASE, sleep, type Stage, tokenOf, until } from './stage.js';

/** The kinds with a queue. */
export function describeQueues(stage: Stage): void {
  const { it } = words();
  const hearing = (client: string) => hear(stage, client);

  it('grants a free lock of each kind, also to its owner again, and leaves nothing after the release', async () => {
    for (const terms of [FAIR, READ, WRITE, SEMAPHORE]) {
      const name = stage.freshName();
      const request = { name, owner: 'a:1', leaseTime: LEASE, queue: { ...terms, ...ASK } };
      const token = tokenOf(await stage.store.acquire(request));
      assert.equal(tokenOf(await stage.store.acquire(request)), token);
      assert.equal((await stage.store.inspect(name))?.kind, terms.kind);
      assert.equal(await stage.store.release({ name, owner: 'a:1', queue: terms }), 'released');
      assert.equal(await stage.store.release({ name, owner: 'a:1', queue: terms }), 'deleted');
      assert.equal(await stage.store.inspect(name), null);
    }
  });

  it('hands over in the order of arrival, each with a greater token', async () => {
    const name = stage.freshName();
    const client = await hearing('b');
    let last = tokenOf(
      await stage.store.acquire({ name, owner: 'a:1', leaseTime: LEASE, queue: { ...FAIR, ...ASK } }),
    );
    const owners = ['b:1', 'b:2', 'b:3'];
    for (const owner of owners) {
      const reply = await stage.other.acquire({
        name,
        owner,
        leaseTime: LEASE,
        queue: { ...FAIR, ...STAND },
      });
      assert.ok(!reply.granted && reply.arrival !== undefined);
    }
    assert.deepEqual(
      (await stage.store.inspect(name))?.queue.map((place) => place.owner),
      owners,
    );
    let holder = 'a:1';
    for (const owner of owners) {
      await stage.store.release({ name, owner: holder, queue: FAIR });
      await client.granted(owner);
      const grant = client.heard.find((message) => message.type === 'granted' && message.owner === owner);
      assert.ok(
        grant?.type === 'granted' && grant.fencingToken > last && grant.grantedAt <= performance.now(),
      );
      last = grant.fencingToken;
      assert.equal((await stage.store.inspect(name))?.holders[0]?.owner, owner);
      holder = owner;
    }
    await stage.store.release({ name, owner: holder, queue: FAIR });
    client.close();
    assert.equal(await stage.store.inspect(name), null);
  });

  it('only asks without an entry, and reports holder and time left with an entry', async () => {
    const name = stage.freshName();
    const client = await hearing('b');
    const enter = (owner: string, terms: typeof ASK | typeof STAND) =>
      stage.other.acquire({ name, owner, leaseTime: LEASE, queue: { ...FAIR, ...terms } });
    tokenOf(await enter('a:1', ASK));
    const queue = async () => (await stage.store.inspect(name))?.queue ?? [];
    const asked = await enter('b:1', ASK);
    assert.ok(!asked.granted && asked.arrival === undefined);
    assert.deepEqual(await queue(), []);
    const stood = await enter('b:1', STAND);
    for (const reply of [asked, stood]) {
      assert.ok(!reply.granted);
      assert.equal(reply.holder, 'a:1');
      assert.ok(reply.retryAfter > 0 && reply.retryAfter <= LEASE, String(reply.retryAfter));
    }
    const [place] = await queue();
    assert.deepEqual([place?.owner, place?.mode], ['b:1', 'exclusive']);
    assert.ok(Math.abs((place?.since ?? 0) - Date.now()) < 60_000, String(place?.since));
    await sleep(30);
    const later = (await queue())[0]?.since;
    assert.ok(Math.abs((later ?? 0) - (place?.since ?? 0)) < 20, 'the entry is as old as before');
    const [holder] = (await stage.store.inspect(name))?.holders ?? [];
    assert.equal(holder?.mode, 'exclusive');
    assert.ok(Math.abs((holder.since ?? Date.now()) - Date.now()) < 60_000, String(holder.since));
    for (const owner of ['b:1', 'a:1']) await stage.other.release({ name, owner, queue: FAIR });
    client.close();
  });

  it('tells the waiter that becomes the next, and when it has to ask again', async () => {
    const name = stage.freshName();
    const client = await hearing('b');
    const enter = (owner: string, leaseTime: number) =>
      stage.store.acquire({ name, owner, leaseTime, queue: { ...READ, ...ASK } });
    await enter('a:1', 1_000);
    await enter('a:2', LEASE);
    await stage.other.acquire({ name, owner: 'b:1', leaseTime: LEASE, queue: { ...WRITE, ...STAND } });
    await stage.store.release({ name, owner: 'a:2', queue: READ });
    const next = () => client.heard.find(({ type }) => type === 'next');
    await until(() => next() !== undefined);
    const message = next();
    assert.ok(message?.type === 'next' && message.owner === 'b:1');
    assert.ok(message.within > 0 && message.within <= 1_000, String(message.within));
    assert.notEqual(message.listen, true, 'there are no waiters outside of the queue');
    await stage.store.release({ name, owner: 'a:1', queue: READ });
    await client.granted('b:1');
    await stage.other.release({ name, owner: 'b:1', queue: WRITE });
    client.close();
  });

  it('keeps a hold from waiters too, for the time in its release', async () => {
    const [name, permits] = [stage.freshName(), stage.freshName()];
    const client = await hearing('b');
    const enter = (owner: string, terms: QueueTerms, of = name) =>
      stage.other.acquire({ name: of, owner, leaseTime: LEASE, queue: { ...terms, ...STAND } });
    await enter('a:1', FAIR);
    await enter('b:1', FAIR);
    const before = performance.now();
    const kept = await stage.store.release({ name, owner: 'a:1', keepFor: 300, queue: FAIR });
    assert.equal(kept, 'released');
    await until(async () => (await enter('b:1', FAIR)).granted);
    assert.ok(performance.now() - before >= 299, 'granted too soon');
    await stage.other.release({ name, owner: 'b:1', queue: FAIR });

    for (const owner of ['a:1', 'a:2']) await enter(owner, SEMAPHORE, permits);
    const again = performance.now();
    await stage.store.release({ name: permits, owner: 'a:1', keepFor: 300, queue: SEMAPHORE });
    await until(async () => (await enter('b:2', SEMAPHORE, permits)).granted);
    assert.ok(performance.now() - again >= 299, 'granted too soon');
    for (const owner of ['a:2', 'b:2']) {
      await stage.store.release({ name: permits, owner, queue: SEMAPHORE });
    }
    client.close();
  });

  it('keeps the entry of an owner that asks again, or names its arrival again', async () => {
    const name = stage.freshName();
    const client = await hearing('b');
    await stage.store.acquire({ name, owner: 'a:1', leaseTime: LEASE, queue: { ...FAIR, ...ASK } });
    const stand = (owner: string, arrival?: number) =>
      stage.other.acquire({
        name,
        owner,
        leaseTime: LEASE,
        queue: { ...FAIR, entry: { arrival }, ownWriteHold: undefined },
      });
    const first = await stand('b:1');
    await stand('b:2');
    await stand('b:1');
    const order = async () => (await stage.store.inspect(name))?.queue.map((place) => place.owner);
    assert.deepEqual(await order(), ['b:1', 'b:2']);
    assert.equal(await stage.other.release({ name, owner: 'b:1', queue: FAIR }), 'taken');
    assert.deepEqual(await order(), ['b:2']);
    assert.ok(!first.granted);
    await stand('b:1', first.arrival);
    assert.deepEqual(await order(), ['b:1', 'b:2']);
    for (const owner of ['b:1', 'b:2', 'a:1']) await stage.other.release({ name, owner, queue: FAIR });
    client.close();
    assert.equal(await stage.store.inspect(name), null);
  });

  it('passes over a waiter without a subscription, at once or after a claim', async () => {
    const name = stage.freshName();
    const client = await hearing('c');
    const stand = (owner: string, arrival?: number) => {
      const queue = { ...FAIR, entry: { arrival }, ownWriteHold: undefined };
      return stage.other.acquire({ name, owner, leaseTime: LEASE, queue });
    };
    await stage.store.acquire({ name, owner: 'a:1', leaseTime: LEASE, queue: { ...FAIR, ...ASK } });
    // A lease that is longer than a claim.
    await stand('dead:1', 1);
    await stand('c:1');
    await stage.store.release({ name, owner: 'a:1', queue: FAIR });
    const news = () => client.heard.find(({ type }) => type !== 'missed');
    await until(() => news() !== undefined);
    const first = news();
    // A store that cannot know which clients subscribe has let the other owner in, and says until when.
    if (first?.type === 'next') {
      assert.ok(first.within <= CLAIM, String(first.within));
      await sleep(first.within + 1);
      assert.ok((await stand('c:1')).granted);
    } else {
      await client.granted('c:1');
    }
    await stage.other.release({ name, owner: 'c:1', queue: FAIR });
    client.close();
  });

  it('grants the lock to waiters behind an owner that enters by itself, after a hold that ended without a message', async () => {
    const name = stage.freshName();
    const client = await hearing('b');
    const stand = (owner: string, terms: QueueTerms) =>
      stage.other.acquire({ name, owner, leaseTime: LEASE, queue: { ...terms, ...STAND } });
    // Long enough for three requests on a busy machine.
    await stage.store.acquire({ name, owner: 'dead:1', leaseTime: 600, queue: { ...WRITE, ...ASK } });
    assert.ok(!(await stand('b:1', READ)).granted);
    assert.ok(!(await stand('b:2', READ)).granted);
    await stand('b:3', WRITE);
    await until(async () => (await stand('b:1', READ)).granted);
    await client.granted('b:2');
    const holders = (await stage.store.inspect(name))?.holders.map(({ owner }) => owner);
    assert.deepEqual(holders?.sort(), ['b:1', 'b:2']);
    for (const owner of ['b:1', 'b:2']) await stage.store.release({ name, owner, queue: READ });
    await client.granted('b:3');
    await stage.store.release({ name, owner: 'b:3', queue: WRITE });
    client.close();
  });

  it('grants the lock to the first waiter when another one asks, after a hold that ended without a message', async () => {
    const name = stage.freshName();
    const client = await hearing('b');
    const stand = (owner: string) =>
      stage.other.acquire({ name, owner, leaseTime: LEASE, queue: { ...FAIR, ...STAND } });
    await stage.store.acquire({ name, owner: 'dead:1', leaseTime: 200, queue: { ...FAIR, ...ASK } });
    await stand('b:1');
    const entered = client.granted('b:1');
    await until(async () => {
      await stand('b:2');
      return (await stage.store.inspect(name))?.holders[0]?.owner === 'b:1';
    });
    await entered;
    for (const owner of ['b:1', 'b:2']) await stage.store.release({ name, owner, queue: FAIR });
    client.close();
  });
}
