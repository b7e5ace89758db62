import assert from 'node:assert/strict';
import { isLockKindMismatchError } from '../../lock.errors.js';
import { CLAIM, type QueueMessage, type QueueTerms } from '../../stores/lock-store.js';
import { LEASE, sleep, type Stage, tokenOf, until, words } from './stage.js';

/** The kinds with a queue. */
export function describeQueues(stage: Stage): void {
  const { it } = words();
  const FAIR = { kind: 'fair', mode: 'exclusive', capacity: 1 } as const;
  const READ = { kind: 'read-write', mode: 'shared', capacity: Number.MAX_SAFE_INTEGER } as const;
  const WRITE = { ...READ, mode: 'exclusive' } as const;
  const SEMAPHORE = { kind: 'semaphore', mode: 'shared', capacity: 2 } as const;
  const STAND = { place: { arrival: undefined }, beside: undefined };
  const ASK = { place: undefined, beside: undefined };

  /** Hears what the store tells the client. */
  const hearing = async (client: string) => {
    const heard: QueueMessage[] = [];
    const subscription = await stage.other.listen(client, (message) => heard.push(message));
    const granted = (owner: string) =>
      until(() => heard.some((message) => message.type === 'granted' && message.owner === owner));
    return {
      heard,
      granted,
      close: () => {
        subscription.close();
      },
    };
  };

  it('grants a free lock of each kind, to its owner again, and leaves nothing after the release', async () => {
    for (const terms of [FAIR, READ, WRITE, SEMAPHORE]) {
      const name = stage.freshName();
      const request = { name, owner: 'a:1', leaseTime: LEASE, queue: { ...terms, ...ASK } };
      const token = tokenOf(await stage.store.acquire(request));
      assert.equal(tokenOf(await stage.store.acquire(request)), token);
      assert.equal((await stage.store.inspect(name))?.kind, terms.kind);
      assert.equal(await stage.store.release({ name, owner: 'a:1', queue: terms }), true);
      assert.equal(await stage.store.release({ name, owner: 'a:1', queue: terms }), false);
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

  it('keeps the place of an owner that asks again, or comes back to it', async () => {
    const name = stage.freshName();
    const client = await hearing('b');
    await stage.store.acquire({ name, owner: 'a:1', leaseTime: LEASE, queue: { ...FAIR, ...ASK } });
    const stand = (owner: string, arrival?: number) =>
      stage.other.acquire({
        name,
        owner,
        leaseTime: LEASE,
        queue: { ...FAIR, place: { arrival }, beside: undefined },
      });
    const first = await stand('b:1');
    await stand('b:2');
    await stand('b:1');
    const order = async () => (await stage.store.inspect(name))?.queue.map((place) => place.owner);
    assert.deepEqual(await order(), ['b:1', 'b:2']);
    assert.equal(await stage.other.release({ name, owner: 'b:1', queue: FAIR }), false);
    assert.deepEqual(await order(), ['b:2']);
    assert.ok(!first.granted);
    await stand('b:1', first.arrival);
    assert.deepEqual(await order(), ['b:1', 'b:2']);
    for (const owner of ['b:1', 'b:2', 'a:1']) await stage.other.release({ name, owner, queue: FAIR });
    client.close();
    assert.equal(await stage.store.inspect(name), null);
  });

  it('passes over who does not listen, at once or after a claim', async () => {
    const name = stage.freshName();
    const client = await hearing('c');
    const stand = (owner: string) =>
      stage.other.acquire({ name, owner, leaseTime: LEASE, queue: { ...FAIR, ...STAND } });
    await stage.store.acquire({ name, owner: 'a:1', leaseTime: LEASE, queue: { ...FAIR, ...ASK } });
    await stand('dead:1');
    await stand('c:1');
    await stage.store.release({ name, owner: 'a:1', queue: FAIR });
    const news = () => client.heard.find(({ type }) => type !== 'missed');
    await until(() => news() !== undefined);
    const first = news();
    // A store that cannot tell who listens has let the other in, and says until when.
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

  it('lets readers in together and a writer alone, in the order of arrival', async () => {
    const name = stage.freshName();
    const client = await hearing('b');
    const enter = (owner: string, terms: QueueTerms) =>
      stage.other.acquire({ name, owner, leaseTime: LEASE, queue: { ...terms, ...STAND } });
    assert.ok((await enter('b:1', READ)).granted);
    assert.ok((await enter('b:2', READ)).granted);
    assert.ok(!(await enter('b:3', WRITE)).granted);
    assert.ok(!(await enter('b:4', READ)).granted);
    assert.ok(!(await enter('b:5', READ)).granted);
    await stage.store.release({ name, owner: 'b:1', queue: READ });
    await stage.store.release({ name, owner: 'b:2', queue: READ });
    await client.granted('b:3');
    assert.equal((await stage.store.inspect(name))?.holders.length, 1);
    await stage.store.release({ name, owner: 'b:3', queue: WRITE });
    await Promise.all([client.granted('b:4'), client.granted('b:5')]);
    for (const owner of ['b:4', 'b:5']) await stage.store.release({ name, owner, queue: READ });
    client.close();
  });

  it('lets in those behind whoever enters by itself, where nobody has told of the end of a hold', async () => {
    const name = stage.freshName();
    const client = await hearing('b');
    const stand = (owner: string, terms: QueueTerms) =>
      stage.other.acquire({ name, owner, leaseTime: LEASE, queue: { ...terms, ...STAND } });
    await stage.store.acquire({ name, owner: 'dead:1', leaseTime: 200, queue: { ...WRITE, ...ASK } });
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

  it('lets in whoever comes first when another looks, where nobody has told of the end of a hold', async () => {
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
    await stage.store.release({ name, owner: 'a:1', queue: READ });
  });

  it('counts permits, and refuses another count', async () => {
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

  it('remembers kind and token while anybody holds it, whoever comes and goes beside', async () => {
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
}
