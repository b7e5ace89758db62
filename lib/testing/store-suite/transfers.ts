import assert from './assert.js';
import { isLockKindMismatchError } from '../../api/error-guards.js';
import type { QueueTerms, TransferReply, TransferRequest } from '../../store/lock-store.js';
import { words } from '../test-framework.js';
import { hear } from './hearing.js';
import { PLAIN } from './plain-stage.js';
import { ASK, FAIR, READ, SEMAPHORE, STAND, WRITE } from './queue-terms.js';
import { LEASE, sleep, type Stage, tokenOf, until } from './stage.js';

/** The behaviour of a store that can pass a hold on from one owner to another. */
export function describeTransfers(stage: Stage, queues: boolean): void {
  const { it } = words();
  const plain: Kind = ['plain', queues ? PLAIN : undefined];
  const kinds: readonly Kind[] = queues
    ? [plain, ['fair', FAIR], ['write', WRITE], ['read', READ], ['semaphore', SEMAPHORE]]
    : [plain];

  for (const [kind, terms] of kinds) {
    it(`passes the hold of a ${kind} lock on, under a greater token`, async () => {
      const lock = new Travelling(stage, terms);
      const token = await lock.take('a:1');
      const before = Date.now();
      const reply = await lock.pass('a:1', 'b:1', { leastToken: token + 1 });
      if (reply === undefined) return;
      assert.ok(tokenOf(reply) > token);
      assert.ok(Math.abs(reply.date - before) < 60_000, String(reply.date));
      assert.deepEqual(await lock.owners(), ['b:1']);
      assert.notEqual(await lock.look('a:1'), 'held');
      assert.equal(await lock.look('b:1'), 'held');
      assert.notEqual(await lock.release('a:1'), 'released');
      const left = (await stage.other.inspect(lock.name))?.holders[0]?.remainingTime ?? 0;
      assert.ok(left > LEASE / 2 && left <= LEASE, String(left));
      // Further than the clock gets in the meantime.
      const far = tokenOf(reply) + 60_000_000;
      const next = await lock.pass('b:1', 'c:1', { leastToken: far });
      assert.ok(next?.granted && next.fencingToken >= far);
      assert.equal(await lock.release('c:1'), 'released');
      assert.equal(await stage.other.inspect(lock.name), null);
      const last = await lock.take('d:1');
      assert.ok(last > far);
      await lock.release('d:1');
    });

    it(`answers a transfer of a ${kind} lock that is sent twice in the same way, and does not shorten the hold`, async () => {
      const lock = new Travelling(stage, terms);
      const token = await lock.take('a:1');
      const first = await lock.pass('a:1', 'b:1', { leastToken: token + 1 });
      if (first === undefined) return;
      const again = await lock.pass('a:1', 'b:1', { leastToken: token + 1, leaseTime: 100 });
      assert.equal(tokenOf(again), tokenOf(first));
      const [hold] = (await stage.other.inspect(lock.name))?.holders ?? [];
      assert.ok(hold?.owner === 'b:1' && hold.remainingTime > LEASE / 2, JSON.stringify(hold));
      const longer = await lock.pass('a:1', 'b:1', { leastToken: token + 1, leaseTime: 2 * LEASE });
      assert.equal(tokenOf(longer), tokenOf(first));
      const left = (await stage.other.inspect(lock.name))?.holders[0]?.remainingTime ?? 0;
      assert.ok(left > LEASE, String(left));
      const far = tokenOf(first) + 60_000_000;
      assert.ok(tokenOf(await lock.pass('a:1', 'b:1', { leastToken: far })) >= far);
      assert.deepEqual(await lock.owners(), ['b:1']);
      await lock.release('b:1');
    });

    it(`passes on no hold of a ${kind} lock that is not there, and changes nothing`, async () => {
      const lock = new Travelling(stage, terms);
      const reply = await lock.pass('a:1', 'b:1');
      if (reply === undefined) return;
      assert.ok(!reply.granted && reply.state === 'deleted');
      assert.ok(Math.abs(reply.date - Date.now()) < 60_000, String(reply.date));
      assert.equal(await stage.other.inspect(lock.name), null);
      await lock.take('c:1');
      const late = await lock.pass('a:1', 'b:1');
      assert.ok(late !== undefined && !late.granted);
      // A shared holder would have let the owner in.
      assert.equal(late.state, lock.isShared ? 'deleted' : 'taken');
      assert.deepEqual(await lock.owners(), ['c:1']);
      await lock.release('c:1');
    });

    it(`passes the hold of a ${kind} lock on to one of several owners that ask at once`, async () => {
      const lock = new Travelling(stage, terms);
      await lock.take('a:1');
      const replies = await Promise.all(
        Array.from({ length: 10 }, (_, n) => lock.pass('a:1', `b:${String(n)}`, {}, n % 2 === 0)),
      );
      if (replies[0] === undefined) return;
      const granted = replies.flatMap((reply, n) => (reply?.granted === true ? [`b:${String(n)}`] : []));
      assert.equal(granted.length, 1, granted.join());
      assert.deepEqual(await lock.owners(), granted);
      await lock.release(granted[0] ?? '');
    });

    it(`ends the hold of a ${kind} lock that nothing renews at the time of the transfer, also sooner than before`, async () => {
      const lock = new Travelling(stage, terms);
      await lock.take('a:1');
      const before = performance.now();
      const reply = await lock.pass('a:1', 'b:1', { leaseTime: 150 });
      if (reply === undefined) return;
      assert.deepEqual(await lock.owners(), ['b:1']);
      await until(async () => (await lock.owners()).length === 0);
      assert.ok(performance.now() - before >= 149, 'ended before its time');
      const late = await lock.pass('b:1', 'c:1');
      assert.ok(late !== undefined && !late.granted);
      assert.deepEqual(await lock.owners(), []);
    });
  }

  it('wakes nothing that waits for a plain lock, unless the hold ends sooner', async () => {
    const lock = new Travelling(stage, plain[1]);
    await lock.take('a:1', LEASE / 2);
    let woken = 0;
    const subscription = await stage.other.subscribeToReleases(lock.name, () => woken++);
    await sleep(20);
    woken = 0;
    const reply = await lock.pass('a:1', 'b:1');
    if (reply !== undefined) {
      await lock.pass('b:1', 'c:1', { leaseTime: 2 * LEASE });
      await sleep(50);
      assert.equal(woken, 0);
      await lock.pass('c:1', 'd:1', { leaseTime: 200 });
      await until(() => woken > 0);
    }
    subscription.close();
    for (const owner of ['a:1', 'd:1']) await lock.release(owner);
  });

  if (!queues) return;

  for (const [kind, terms] of kinds) {
    it(`tells the waiters of a ${kind} lock of an end that comes sooner, and of no other, and hands over with the release`, async () => {
      const lock = new Travelling(stage, terms);
      const one = kind === 'read' ? new Travelling(stage, WRITE, lock.name) : lock;
      const client = await hear(stage, `waits-${kind}`);
      const waiter = `waits-${kind}:1`;
      const holders = kind === 'semaphore' ? ['a:1', 'z:1'] : ['a:1'];
      for (const owner of holders) await lock.take(owner);
      const standing = await one.stand(waiter);
      assert.ok(!standing.granted);
      const heard = () => client.heard.filter(({ owner }) => owner === waiter);
      const reply = await lock.pass('a:1', 'b:1', { leaseTime: 2 * LEASE });
      if (reply !== undefined) {
        await sleep(30);
        assert.deepEqual(heard(), []);
        await lock.pass('b:1', 'c:1', { leaseTime: LEASE / 2 });
        await until(() => heard().some(({ type }) => type === 'next'));
        const told = heard().find((message) => message.type === 'next');
        assert.ok(told?.type === 'next' && told.within <= LEASE / 2, JSON.stringify(told));
        assert.ok(!heard().some(({ type }) => type === 'granted'));
      }
      await lock.release(reply === undefined ? 'a:1' : 'c:1');
      await client.granted(waiter);
      await one.release(waiter);
      if (kind === 'semaphore') await lock.release('z:1');
      client.close();
      assert.equal(await stage.other.inspect(lock.name), null);
    });
  }

  it('passes on no hold for a lock of another kind, or of another capacity', async () => {
    const others: readonly (readonly [QueueTerms, readonly QueueTerms[]])[] = [
      [WRITE, [FAIR, PLAIN]],
      [FAIR, [WRITE, PLAIN]],
      [READ, [SEMAPHORE]],
      [SEMAPHORE, [READ, { ...SEMAPHORE, capacity: SEMAPHORE.capacity + 1 }]],
    ];
    for (const [terms, wrong] of others) {
      const lock = new Travelling(stage, terms);
      await lock.take('a:1');
      for (const queue of wrong) {
        const reply = await lock.pass('a:1', 'b:1', { queue }).catch((error: unknown) => {
          if (!isLockKindMismatchError(error)) throw error;
          return { granted: false, state: 'taken' } as const;
        });
        if (reply === undefined) return;
        assert.ok(!reply.granted && reply.state === 'taken', JSON.stringify([terms, queue]));
      }
      assert.deepEqual(await lock.owners(), ['a:1']);
      await lock.release('a:1');
    }
  });

  it('keeps the other holders of a shared lock, and its capacity', async () => {
    const lock = new Travelling(stage, SEMAPHORE);
    await lock.take('a:1', LEASE / 2);
    await lock.take('z:1');
    if ((await lock.pass('a:1', 'b:1')) === undefined) return;
    assert.deepEqual((await lock.owners()).toSorted(), ['b:1', 'z:1']);
    assert.ok(!(await lock.ask('c:1')).granted);
    await lock.release('b:1');
    tokenOf(await lock.ask('c:1'));
    for (const owner of ['c:1', 'z:1']) await lock.release(owner);
  });
}

type Kind = readonly [title: string, terms: QueueTerms | undefined];

/** One lock of any kind, and what its owners do. */
class Travelling {
  constructor(
    private readonly stage: Stage,
    private readonly terms: QueueTerms | undefined,
    readonly name = stage.freshName(),
  ) {}

  get isShared(): boolean {
    return this.terms?.mode === 'shared';
  }

  ask(owner: string, leaseTime = LEASE) {
    const { name, terms } = this;
    return this.stage.store.acquire({ name, owner, leaseTime, queue: terms && { ...terms, ...ASK } });
  }

  stand(owner: string) {
    const { name, terms } = this;
    const queue = terms && { ...terms, ...STAND };
    return this.stage.other.acquire({ name, owner, leaseTime: LEASE, queue });
  }

  async take(owner: string, leaseTime = LEASE): Promise<number> {
    return tokenOf(await this.ask(owner, leaseTime));
  }

  /** Undefined if the store does not do that. */
  async pass(
    owner: string,
    next: string,
    more: Partial<TransferRequest> = {},
    first = false,
  ): Promise<TransferReply | undefined> {
    const { store, other } = this.stage;
    const { name, terms: queue } = this;
    const request = { name, owner, next, leaseTime: LEASE, leastToken: 1, queue, ...more };
    return await (first ? store : other).transfer?.(request);
  }

  async look(owner: string) {
    return await this.stage.store.renew([{ name: this.name, owner, leaseTime: 0 }])[0];
  }

  release(owner: string) {
    const { name, terms: queue } = this;
    return this.stage.store.release({ name, owner, leaseTime: LEASE, queue });
  }

  async owners(): Promise<readonly string[]> {
    return (await this.stage.other.inspect(this.name))?.holders.map(({ owner }) => owner) ?? [];
  }
}
