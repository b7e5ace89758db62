import assert from 'node:assert/strict';
import { isLockKindMismatchError, isLockLostError, isLockTimeoutError } from '../lock.errors.js';
import { LockService } from '../lock.service.js';
import type { Lock } from '../locks/lock.js';
import {
  type AcquireReply,
  CLAIM,
  type LockStore,
  type QueueMessage,
  type QueueTerms,
} from '../stores/lock-store.js';

/** A place where locks live, reached by any number of stores as by so many processes. */
export interface StorePlace {
  /** Another client of the place. The suite closes it. */
  open(): LockStore;
  /** Ends the place itself. */
  close(): Promise<void>;
}

/** The few words of a test framework that the suite needs; Jest's and Vitest's globals fit. */
interface TestFramework {
  describe: (title: string, body: () => void) => void;
  it: (title: string, body: () => Promise<void>) => void;
  beforeAll: (body: () => Promise<void>) => void;
  afterAll: (body: () => Promise<void>) => void;
}

const LEASE = 5_000;
const sleep = (time: number) => new Promise((resolve) => setTimeout(resolve, time));

/** Waits until the condition holds, 5 s at most. */
async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + 5_000;
  while (!(await condition())) {
    assert.ok(performance.now() < end, `still false after 5 s: ${String(condition)}`);
    await sleep(5);
  }
}

function tokenOf(reply: AcquireReply): number {
  assert.ok(reply.granted, 'expected the lock to be granted');
  return reply.fencingToken;
}

/**
 * What every store has to do, as tests: for the authors of stores, and for ours.
 * @param createPlace makes a place of its own for this suite
 * @param options `queues: false` for a store without the kinds that have a queue; see {@link LockStore.noQueues}
 */
export function describeLockStore(
  title: string,
  createPlace: () => Promise<StorePlace>,
  { queues = true }: { queues?: boolean } = {},
): void {
  const { describe, it, beforeAll, afterAll } = globalThis as unknown as TestFramework;

  describe(`lock store: ${title}`, () => {
    let place: StorePlace;
    let store: LockStore;
    let other: LockStore;
    let names = 0;
    const freshName = () => `conformance:${String(++names)}`;

    beforeAll(async () => {
      place = await createPlace();
      store = place.open();
      other = place.open();
    });

    afterAll(async () => {
      await store.close();
      await other.close();
      await place.close();
    });

    describe('acquire', () => {
      it('grants a free lock with a token that is a safe integer', async () => {
        const token = tokenOf(await store.acquire({ name: freshName(), owner: 'a:1', leaseTime: LEASE }));
        assert.ok(Number.isSafeInteger(token) && token > 0, String(token));
      });

      it('tells everybody else who holds it and for how long at most', async () => {
        const name = freshName();
        await store.acquire({ name, owner: 'a:1', leaseTime: LEASE });
        const reply = await other.acquire({ name, owner: 'b:1', leaseTime: LEASE });
        assert.ok(!reply.granted);
        assert.equal(reply.holder, 'a:1');
        assert.ok(reply.retryAfter > LEASE / 2 && reply.retryAfter <= LEASE, String(reply.retryAfter));
      });

      it('succeeds again for the owner that has it, and still needs one release only', async () => {
        const name = freshName();
        const first = tokenOf(await store.acquire({ name, owner: 'a:1', leaseTime: LEASE }));
        const again = tokenOf(await store.acquire({ name, owner: 'a:1', leaseTime: LEASE }));
        assert.ok(again > first);
        assert.equal(await store.release({ name, owner: 'a:1' }), true);
        assert.equal(await store.inspect(name), null);
      });

      it('grants it to one of many', async () => {
        const name = freshName();
        const replies = await Promise.all(
          Array.from({ length: 50 }, (_, n) =>
            (n % 2 === 0 ? store : other).acquire({ name, owner: `a:${String(n)}`, leaseTime: LEASE }),
          ),
        );
        assert.equal(replies.filter((reply) => reply.granted).length, 1);
      });

      it('keeps names apart, whatever characters they have', async () => {
        for (const name of [
          'a b',
          'ключ',
          '{tag}:x',
          'a{b',
          'a}b',
          '{}',
          '*',
          'a\nb',
          '"',
          'x'.repeat(1_024),
        ]) {
          tokenOf(await store.acquire({ name, owner: 'a:1', leaseTime: LEASE }));
          assert.equal((await store.inspect(name))?.holders[0]?.owner, 'a:1');
          assert.equal(await store.release({ name, owner: 'a:1' }), true);
        }
      });
    });

    describe('acquireAll', () => {
      const owners = async (names: readonly string[]) =>
        await Promise.all(names.map(async (name) => (await store.inspect(name))?.holders[0]?.owner));
      /** Names of one place: where hash tags decide, these share one. */
      const freshNames = (count: number) => {
        const tag = freshName();
        return Array.from({ length: count }, (_, n) => `{${tag}}:${String(n)}`);
      };

      it('says of every name where it lives, always the same', async () => {
        const [one, two] = freshNames(2) as [string, string];
        assert.equal(typeof store.placeOf(one), 'string');
        assert.equal(store.placeOf(one), store.placeOf(two));
        assert.equal(store.placeOf(one), other.placeOf(one));
        await store.acquireAll({ names: [one, two], owner: 'a:1', leaseTime: 1_000 });
      });

      it('grants all names to one owner, each with a token of its own that grows', async () => {
        const names = freshNames(50);
        const request = { names, owner: 'a:1', leaseTime: LEASE };
        const first = await store.acquireAll(request);
        assert.ok(first.granted);
        assert.equal(first.fencingTokens.length, 50);
        assert.deepEqual(new Set(await owners(names)), new Set(['a:1']));
        const again = await store.acquireAll(request);
        assert.ok(again.granted, 'a request that is sent twice changes nothing');
        again.fencingTokens.forEach((token, n) => {
          assert.ok(token > (first.fencingTokens[n] ?? Infinity));
        });
        for (const name of names) assert.equal(await store.release({ name, owner: 'a:1' }), true);
        for (const [n, name] of names.slice(0, 3).entries()) {
          const token = tokenOf(await other.acquire({ name, owner: 'b:1', leaseTime: LEASE }));
          assert.ok(token > (again.fencingTokens[n] ?? Infinity));
        }
      });

      it('takes none when one is busy, and says which, for how long at most, and by whom', async () => {
        const names = freshNames(3);
        await other.acquire({ name: names[1] ?? '', owner: 'b:1', leaseTime: LEASE });
        const reply = await store.acquireAll({ names, owner: 'a:1', leaseTime: LEASE * 10 });
        assert.ok(!reply.granted);
        assert.equal(reply.name, names[1]);
        assert.equal(reply.holder, 'b:1');
        assert.ok(reply.retryAfter > LEASE / 2 && reply.retryAfter <= LEASE, String(reply.retryAfter));
        assert.deepEqual(await owners(names), [undefined, 'b:1', undefined]);
      });

      it('never lets two in, however they overlap', async () => {
        const names = freshNames(4);
        const replies = await Promise.all(
          Array.from({ length: 40 }, (_, n) =>
            (n % 2 === 0 ? store : other).acquireAll({
              names: [0, 1, 2].map((k) => names[(n + k) % 4] ?? ''),
              owner: `a:${String(n)}`,
              leaseTime: LEASE,
            }),
          ),
        );
        assert.equal(replies.filter((reply) => reply.granted).length, 1);
      });

      it('lets whoever has reserved a turn come first, and holds nothing against a single acquisition', async () => {
        const names = freshNames(3);
        const [first, second, third] = names as [string, string, string];
        await other.acquire({ name: first, owner: 'b:1', leaseTime: LEASE });
        const turn = { asker: 'elder', reserveFor: LEASE };
        const elder = { names: [first, second], owner: 'a:1', leaseTime: LEASE, turn };
        assert.equal((await store.acquireAll(elder)).granted, false);

        const younger = { names: [second, third], owner: 'b:2', leaseTime: LEASE };
        const reply = await other.acquireAll(younger);
        assert.ok(!reply.granted);
        assert.equal(reply.name, second);
        assert.ok(reply.retryAfter > 0 && reply.retryAfter <= LEASE, String(reply.retryAfter));
        // It cannot reserve what another has reserved, nor a part of it.
        await other.acquireAll({ ...younger, turn: { asker: 'younger', reserveFor: LEASE } });
        tokenOf(await other.acquire({ name: third, owner: 'c:1', leaseTime: LEASE }));
        await other.release({ name: third, owner: 'c:1' });
        tokenOf(await other.acquire({ name: second, owner: 'c:2', leaseTime: LEASE }));
        await other.release({ name: second, owner: 'c:2' });

        await other.release({ name: first, owner: 'b:1' });
        assert.ok((await store.acquireAll(elder)).granted);
        for (const name of elder.names) await store.release({ name, owner: 'a:1' });
        assert.ok((await other.acquireAll(younger)).granted, 'a turn that was taken is over');
      });

      it('forgets a turn that is not taken', async () => {
        const names = freshNames(2);
        await other.acquire({ name: names[0] ?? '', owner: 'b:1', leaseTime: LEASE });
        const turn = { asker: 'gone', reserveFor: 50 };
        await store.acquireAll({ names, owner: 'a:1', leaseTime: LEASE, turn });
        await other.release({ name: names[0] ?? '', owner: 'b:1' });
        await until(async () => (await other.acquireAll({ names, owner: 'b:2', leaseTime: LEASE })).granted);
      });

      it('gives no token below the least that is asked for', async () => {
        const [name] = freshNames(1) as [string];
        const far = (Date.now() + 3_600_000) * 1_000;
        const reply = await store.acquireAll({
          names: [name],
          owner: 'a:1',
          leaseTime: LEASE,
          leastToken: far,
        });
        assert.ok(reply.granted && (reply.fencingTokens[0] ?? 0) >= far);
        const more = far + 1_000;
        assert.ok(
          tokenOf(await store.acquire({ name, owner: 'a:1', leaseTime: LEASE, leastToken: more })) >= more,
        );
        await store.release({ name, owner: 'a:1' });
        assert.ok(tokenOf(await other.acquire({ name, owner: 'b:1', leaseTime: LEASE })) > more);
      });
    });

    describe('expiry', () => {
      it('frees a lock whose holder is silent, after its lease and not before', async () => {
        const name = freshName();
        const before = performance.now();
        await store.acquire({ name, owner: 'a:1', leaseTime: 150 });
        await until(async () => (await other.acquire({ name, owner: 'b:1', leaseTime: LEASE })).granted);
        assert.ok(performance.now() - before >= 149, 'granted before the lease was over');
      });

      it('makes a release after the lease a plain false that harms nobody', async () => {
        const name = freshName();
        await store.acquire({ name, owner: 'a:1', leaseTime: 20 });
        await until(async () => (await other.acquire({ name, owner: 'b:1', leaseTime: LEASE })).granted);
        assert.equal(await store.release({ name, owner: 'a:1' }), false);
        assert.equal((await store.inspect(name))?.holders[0]?.owner, 'b:1');
      });
    });

    describe('renew', () => {
      it('makes a hold last longer', async () => {
        const name = freshName();
        await store.acquire({ name, owner: 'a:1', leaseTime: 500 });
        assert.equal(await store.renew([{ name, owner: 'a:1', leaseTime: LEASE }])[0], 'held');
        const remaining = (await store.inspect(name))?.holders[0]?.remainingTime ?? 0;
        assert.ok(remaining > LEASE / 2, String(remaining));
      });

      it('never makes one shorter', async () => {
        const name = freshName();
        await store.acquire({ name, owner: 'a:1', leaseTime: LEASE });
        assert.equal(await store.renew([{ name, owner: 'a:1', leaseTime: 100 }])[0], 'held');
        const remaining = (await store.inspect(name))?.holders[0]?.remainingTime ?? 0;
        assert.ok(remaining > LEASE / 2, String(remaining));
      });

      it('answers for each hold by itself, in a batch of any size', async () => {
        const mine = Array.from({ length: 250 }, freshName);
        await Promise.all(mine.map((name) => store.acquire({ name, owner: 'a:1', leaseTime: LEASE })));
        const [taken, deleted] = [mine[7], mine[120]] as [string, string];
        await store.forceRelease(taken);
        await store.forceRelease(deleted);
        await other.acquire({ name: taken, owner: 'b:1', leaseTime: LEASE });
        const states = await Promise.all(
          store.renew(mine.map((name) => ({ name, owner: 'a:1', leaseTime: LEASE }))),
        );
        mine.forEach((name, n) => {
          assert.equal(states[n], name === taken ? 'taken' : name === deleted ? 'deleted' : 'held');
        });
      });

      it('does not bring a lock back', async () => {
        const name = freshName();
        await store.acquire({ name, owner: 'a:1', leaseTime: LEASE });
        await store.release({ name, owner: 'a:1' });
        assert.equal(await store.renew([{ name, owner: 'a:1', leaseTime: LEASE }])[0], 'deleted');
        assert.equal(await store.inspect(name), null);
      });
    });

    describe('release', () => {
      it('frees the lock once, and is false after that', async () => {
        const name = freshName();
        await store.acquire({ name, owner: 'a:1', leaseTime: LEASE });
        assert.equal(await store.release({ name, owner: 'a:1' }), true);
        assert.equal(await store.release({ name, owner: 'a:1' }), false);
      });

      it('changes nothing when a stranger asks', async () => {
        const name = freshName();
        await store.acquire({ name, owner: 'a:1', leaseTime: LEASE });
        assert.equal(await other.release({ name, owner: 'b:1' }), false);
        assert.equal((await store.inspect(name))?.holders[0]?.owner, 'a:1');
      });

      it('by force, frees a lock whoever has it', async () => {
        const name = freshName();
        await store.acquire({ name, owner: 'a:1', leaseTime: LEASE });
        assert.equal(await other.forceRelease(name), true);
        assert.equal(await other.forceRelease(name), false);
        assert.equal(await store.inspect(name), null);
      });
    });

    describe('fencing token', () => {
      it('grows with every acquisition, whoever makes it', async () => {
        const name = freshName();
        let last = 0;
        for (let n = 0; n < 50; n++) {
          const owner = `a:${String(n)}`;
          const token = tokenOf(
            await (n % 2 === 0 ? store : other).acquire({ name, owner, leaseTime: LEASE }),
          );
          assert.ok(token > last, `${String(token)} after ${String(last)}`);
          last = token;
          await store.release({ name, owner });
        }
      });

      it('grows beyond the last one that was handed on under a hold', async () => {
        const name = freshName();
        const granted = tokenOf(await store.acquire({ name, owner: 'a:1', leaseTime: LEASE }));
        // Further than the clock gets meanwhile.
        const handedOn = granted + 60_000_000;
        await store.release({ name, owner: 'a:1', fencingToken: handedOn });
        assert.ok(tokenOf(await other.acquire({ name, owner: 'b:1', leaseTime: LEASE })) > handedOn);
      });
    });

    describe('subscribe', () => {
      it('tells of a release, to all who listen', async () => {
        const name = freshName();
        const woken = new Set<string>();
        await store.acquire({ name, owner: 'a:1', leaseTime: LEASE });
        const subscriptions = await Promise.all([
          other.subscribe(name, () => woken.add('one')),
          other.subscribe(name, () => woken.add('two')),
          store.subscribe(name, () => woken.add('releaser')),
        ]);
        assert.ok(subscriptions.every((subscription) => subscription.active));
        await store.release({ name, owner: 'a:1' });
        await until(() => woken.size === 3);
        for (const subscription of subscriptions) subscription.close();
      });

      it('tells of a forced release', async () => {
        const name = freshName();
        const woken = new Set<string>();
        await store.acquire({ name, owner: 'a:1', leaseTime: LEASE });
        const subscription = await other.subscribe(name, () => woken.add('one'));
        await store.forceRelease(name);
        await until(() => woken.has('one'));
        subscription.close();
      });

      it('goes on for the others when one closes, and is silent for the one that did', async () => {
        const name = freshName();
        const woken = new Set<string>();
        const first = await other.subscribe(name, () => woken.add('first'));
        const second = await other.subscribe(name, () => woken.add('second'));
        woken.clear();
        first.close();
        await store.acquire({ name, owner: 'a:1', leaseTime: LEASE });
        await store.release({ name, owner: 'a:1' });
        await until(() => woken.has('second'));
        assert.ok(!woken.has('first'));
        second.close();
      });
    });

    it('inspects holder, time and token, and is null for a free lock', async () => {
      const name = freshName();
      assert.equal(await store.inspect(name), null);
      const token = tokenOf(await store.acquire({ name, owner: 'a:1', leaseTime: LEASE }));
      const stored = await other.inspect(name);
      // Of several nodes one may have given a greater one that nobody has got.
      assert.ok((stored?.fencingToken ?? 0) >= token);
      assert.ok(stored !== null);
      assert.equal(stored.holders.length, 1);
      const [holder] = stored.holders;
      assert.equal(holder?.owner, 'a:1');
      assert.ok(Math.abs((holder.since ?? 0) - Date.now()) < 60_000, String(holder.since));
      assert.ok(holder.remainingTime <= LEASE && holder.remainingTime > LEASE / 2);
    });

    it('reports the health of its nodes', async () => {
      const { status, nodes } = await store.health();
      assert.equal(status, 'up');
      assert.ok(nodes.length > 0);
      for (const node of nodes) assert.equal(node.status, 'up', node.error);
    });

    const describeQueue = () => {
      const FAIR = { kind: 'fair', mode: 'exclusive', capacity: 1 } as const;
      const READ = { kind: 'read-write', mode: 'shared', capacity: Number.MAX_SAFE_INTEGER } as const;
      const WRITE = { ...READ, mode: 'exclusive' } as const;
      const SEMAPHORE = { kind: 'semaphore', mode: 'shared', capacity: 2 } as const;
      const STAND = { place: { arrival: undefined }, beside: undefined };
      const ASK = { place: undefined, beside: undefined };

      /** Hears what the store tells the client. */
      const hearing = async (client: string) => {
        const heard: QueueMessage[] = [];
        const subscription = await other.listen(client, (message) => heard.push(message));
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
          const name = freshName();
          const request = { name, owner: 'a:1', leaseTime: LEASE, queue: { ...terms, ...ASK } };
          const token = tokenOf(await store.acquire(request));
          assert.equal(tokenOf(await store.acquire(request)), token);
          assert.equal((await store.inspect(name))?.kind, terms.kind);
          assert.equal(await store.release({ name, owner: 'a:1', queue: terms }), true);
          assert.equal(await store.release({ name, owner: 'a:1', queue: terms }), false);
          assert.equal(await store.inspect(name), null);
        }
      });

      it('hands over in the order of arrival, each with a greater token', async () => {
        const name = freshName();
        const client = await hearing('b');
        let last = tokenOf(
          await store.acquire({ name, owner: 'a:1', leaseTime: LEASE, queue: { ...FAIR, ...ASK } }),
        );
        const owners = ['b:1', 'b:2', 'b:3'];
        for (const owner of owners) {
          const reply = await other.acquire({ name, owner, leaseTime: LEASE, queue: { ...FAIR, ...STAND } });
          assert.ok(!reply.granted && reply.arrival !== undefined);
        }
        assert.deepEqual(
          (await store.inspect(name))?.queue.map((place) => place.owner),
          owners,
        );
        let holder = 'a:1';
        for (const owner of owners) {
          await store.release({ name, owner: holder, queue: FAIR });
          await client.granted(owner);
          const grant = client.heard.find((message) => message.type === 'granted' && message.owner === owner);
          assert.ok(
            grant?.type === 'granted' && grant.fencingToken > last && grant.grantedAt <= performance.now(),
          );
          last = grant.fencingToken;
          assert.equal((await store.inspect(name))?.holders[0]?.owner, owner);
          holder = owner;
        }
        await store.release({ name, owner: holder, queue: FAIR });
        client.close();
        assert.equal(await store.inspect(name), null);
      });

      it('keeps the place of an owner that asks again, or comes back to it', async () => {
        const name = freshName();
        const client = await hearing('b');
        await store.acquire({ name, owner: 'a:1', leaseTime: LEASE, queue: { ...FAIR, ...ASK } });
        const stand = (owner: string, arrival?: number) =>
          other.acquire({
            name,
            owner,
            leaseTime: LEASE,
            queue: { ...FAIR, place: { arrival }, beside: undefined },
          });
        const first = await stand('b:1');
        await stand('b:2');
        await stand('b:1');
        const order = async () => (await store.inspect(name))?.queue.map((place) => place.owner);
        assert.deepEqual(await order(), ['b:1', 'b:2']);
        assert.equal(await other.release({ name, owner: 'b:1', queue: FAIR }), false);
        assert.deepEqual(await order(), ['b:2']);
        assert.ok(!first.granted);
        await stand('b:1', first.arrival);
        assert.deepEqual(await order(), ['b:1', 'b:2']);
        for (const owner of ['b:1', 'b:2', 'a:1']) await other.release({ name, owner, queue: FAIR });
        client.close();
        assert.equal(await store.inspect(name), null);
      });

      it('passes over who does not listen, at once or after a claim', async () => {
        const name = freshName();
        const client = await hearing('c');
        const stand = (owner: string) =>
          other.acquire({ name, owner, leaseTime: LEASE, queue: { ...FAIR, ...STAND } });
        await store.acquire({ name, owner: 'a:1', leaseTime: LEASE, queue: { ...FAIR, ...ASK } });
        await stand('dead:1');
        await stand('c:1');
        await store.release({ name, owner: 'a:1', queue: FAIR });
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
        await other.release({ name, owner: 'c:1', queue: FAIR });
        client.close();
      });

      it('lets readers in together and a writer alone, in the order of arrival', async () => {
        const name = freshName();
        const client = await hearing('b');
        const enter = (owner: string, terms: QueueTerms) =>
          other.acquire({ name, owner, leaseTime: LEASE, queue: { ...terms, ...STAND } });
        assert.ok((await enter('b:1', READ)).granted);
        assert.ok((await enter('b:2', READ)).granted);
        assert.ok(!(await enter('b:3', WRITE)).granted);
        assert.ok(!(await enter('b:4', READ)).granted);
        assert.ok(!(await enter('b:5', READ)).granted);
        await store.release({ name, owner: 'b:1', queue: READ });
        await store.release({ name, owner: 'b:2', queue: READ });
        await client.granted('b:3');
        assert.equal((await store.inspect(name))?.holders.length, 1);
        await store.release({ name, owner: 'b:3', queue: WRITE });
        await Promise.all([client.granted('b:4'), client.granted('b:5')]);
        for (const owner of ['b:4', 'b:5']) await store.release({ name, owner, queue: READ });
        client.close();
      });

      it('lets in those behind whoever enters by itself, where nobody has told of the end of a hold', async () => {
        const name = freshName();
        const client = await hearing('b');
        const stand = (owner: string, terms: QueueTerms) =>
          other.acquire({ name, owner, leaseTime: LEASE, queue: { ...terms, ...STAND } });
        await store.acquire({ name, owner: 'dead:1', leaseTime: 200, queue: { ...WRITE, ...ASK } });
        assert.ok(!(await stand('b:1', READ)).granted);
        assert.ok(!(await stand('b:2', READ)).granted);
        await stand('b:3', WRITE);
        await until(async () => (await stand('b:1', READ)).granted);
        await client.granted('b:2');
        const holders = (await store.inspect(name))?.holders.map(({ owner }) => owner);
        assert.deepEqual(holders?.sort(), ['b:1', 'b:2']);
        for (const owner of ['b:1', 'b:2']) await store.release({ name, owner, queue: READ });
        await client.granted('b:3');
        await store.release({ name, owner: 'b:3', queue: WRITE });
        client.close();
      });

      it('gives each holder a deadline of its own', async () => {
        const name = freshName();
        const enter = (owner: string, leaseTime: number) =>
          store.acquire({ name, owner, leaseTime, queue: { ...READ, ...ASK } });
        await enter('a:1', LEASE);
        await enter('a:2', 100);
        await until(async () => (await store.inspect(name))?.holders.length === 1);
        const [left] = (await store.inspect(name))?.holders ?? [];
        assert.equal(left?.owner, 'a:1');
        assert.ok(left.remainingTime > LEASE / 2);
        assert.equal(await store.renew([{ name, owner: 'a:2', leaseTime: LEASE }])[0], 'deleted');
        assert.equal(await store.renew([{ name, owner: 'a:1', leaseTime: LEASE }])[0], 'held');
        await store.release({ name, owner: 'a:1', queue: READ });
      });

      it('counts permits, and refuses another count', async () => {
        const name = freshName();
        const enter = (owner: string, capacity = 2) =>
          store.acquire({ name, owner, leaseTime: LEASE, queue: { ...SEMAPHORE, ...ASK, capacity } });
        assert.ok((await enter('a:1')).granted);
        assert.ok((await enter('a:2')).granted);
        assert.ok(!(await enter('a:3')).granted);
        await assert.rejects(enter('a:4', 3), (error: Error) => /3 permits.*2 permits/.test(error.message));
        await store.release({ name, owner: 'a:1', queue: SEMAPHORE });
        assert.ok((await enter('a:3')).granted);
        for (const owner of ['a:2', 'a:3']) await store.release({ name, owner, queue: SEMAPHORE });
      });

      it('remembers kind and token while anybody holds it, whoever comes and goes beside', async () => {
        const name = freshName();
        const read = (owner: string, leaseTime: number) =>
          store.acquire({ name, owner, leaseTime, queue: { ...READ, ...ASK } });
        await read('a:1', LEASE);
        const last = tokenOf(await read('a:2', 100));
        await read('a:3', 100);
        await store.release({ name, owner: 'a:3', queue: READ });
        await until(async () => (await store.inspect(name))?.holders.length === 1);
        const semaphore = other.acquire({
          name,
          owner: 'b:1',
          leaseTime: LEASE,
          queue: { ...SEMAPHORE, ...ASK },
        });
        await assert.rejects(semaphore, isLockKindMismatchError);
        assert.ok(tokenOf(await read('a:4', LEASE)) > last);
        for (const owner of ['a:1', 'a:4']) await store.release({ name, owner, queue: READ });
      });

      it('is one kind per name, the plain lock included', async () => {
        const name = freshName();
        const fair = { name, owner: 'a:1', leaseTime: LEASE, queue: { ...FAIR, ...ASK } };
        const write = { name, owner: 'b:1', leaseTime: LEASE, queue: { ...WRITE, ...ASK } };
        const plain = { name, owner: 'b:1', leaseTime: LEASE };
        await store.acquire(fair);
        await assert.rejects(store.acquire(write), isLockKindMismatchError);
        await assert.rejects(store.acquire(plain), isLockKindMismatchError);
        await store.release({ ...fair, queue: FAIR });
        await store.acquire(plain);
        await assert.rejects(store.acquire(fair), isLockKindMismatchError);
        await store.release(plain);
        assert.ok((await store.acquire(write)).granted);
        await store.release({ ...write, queue: WRITE });
      });
    };

    if (queues) describe('queue', describeQueue);
    else {
      it('says why it has no kinds with a queue', () => {
        assert.ok(store.noQueues !== undefined && store.noQueues.length > 0);
        return Promise.resolve();
      });
    }

    describe('under a LockService', () => {
      const withServices = async (
        body: (one: LockService, two: LockService) => Promise<void>,
      ): Promise<void> => {
        const one = new LockService({ store: place.open(), leaseTime: 1_000 });
        const two = new LockService({ store: place.open(), leaseTime: 1_000 });
        try {
          await body(one, two);
        } finally {
          await one.onApplicationShutdown();
          await two.onApplicationShutdown();
        }
      };

      const kinds: [string, (locks: LockService, name: string) => Lock, number][] = [
        ['plain', (locks, name) => locks.getLock(name), 1],
        ['fair', (locks, name) => locks.getFairLock(name), 1],
        ['write', (locks, name) => locks.getReadWriteLock(name).write, 1],
        ['read', (locks, name) => locks.getReadWriteLock(name).read, Infinity],
        ['semaphore', (locks, name) => locks.getSemaphore(name, 3), 3],
      ];
      for (const [kind, lockOf, allowed] of queues ? kinds : kinds.slice(0, 1)) {
        it(`lets as many in at once as a ${kind} lock allows, renews them, and leaves nothing`, () =>
          withServices(async (one, two) => {
            const name = freshName();
            let inside = 0;
            let most = 0;
            const work = async (time: number) => {
              most = Math.max(most, ++inside);
              await sleep(time);
              inside--;
            };
            await Promise.all(
              Array.from({ length: 20 }, (_, n) =>
                lockOf(n % 2 === 0 ? one : two, name).using(() => work(2)),
              ),
            );
            assert.ok(most <= allowed, `${String(most)} inside`);
            if (allowed > 1) assert.ok(most > 1, 'nobody shared it');
            // Longer than the lease of 1 s: held by renewals.
            await lockOf(one, name).using(async (lease) => {
              await sleep(1_500);
              assert.equal(lease.held, true);
            });
            assert.equal(await one.inspect(name), null);
          }));
      }

      it('excludes, waits and hands over', () =>
        withServices(async (one, two) => {
          const name = freshName();
          let inside = 0;
          let most = 0;
          const work = async () => {
            most = Math.max(most, ++inside);
            await sleep(1);
            inside--;
          };
          await Promise.all(
            Array.from({ length: 40 }, (_, n) => (n % 2 === 0 ? one : two).using(name, work)),
          );
          assert.equal(most, 1);
          assert.equal(await one.inspect(name), null);
        }));

      it('renews a lease for as long as it is held', () =>
        withServices(async (one, two) => {
          const name = freshName();
          const lease = await one.acquire(name);
          await sleep(2_500);
          assert.equal(lease.held, true);
          assert.equal(await two.tryAcquire(name), null);
          await lease.release();
        }));

      it('ends a fixed lease at its time, tells the holder, and lets the next one in', () =>
        withServices(async (one, two) => {
          const name = freshName();
          const lease = await one.acquire(name, { leaseTime: 200 });
          const next = await two.acquire(name);
          assert.equal(lease.held, false);
          assert.ok(isLockLostError(lease.signal.reason));
          assert.ok(next.fencingToken > lease.fencingToken);
          await lease.release();
          assert.equal(next.held, true);
          assert.equal(await one.tryAcquire(name), null);
          await next.release();
        }));

      it('gives up when the wait time is over', () =>
        withServices(async (one, two) => {
          const name = freshName();
          const lease = await one.acquire(name);
          await assert.rejects(two.acquire(name, { waitTime: 60 }), isLockTimeoutError);
          await lease.release();
        }));

      it('re-enters in one scope, with one token, and releases with the last hold', () =>
        withServices(async (one, two) => {
          const name = freshName();
          const lock = one.getLock(name);
          await one.using(name, async (outer) => {
            await one.using(name, (inner) => {
              assert.equal(inner.fencingToken, outer.fencingToken);
              assert.equal(lock.holdCount(), 2);
            });
            assert.equal(lock.holdCount(), 1);
            assert.equal(await two.tryAcquire(name), null);
          });
          assert.equal(await lock.isLocked(), false);
        }));
    });
  });
}
