import assert from './assert.js';
import { CLAIM } from '../../store/queue-messages.js';
import { words } from '../test-framework.js';
import { hear } from './hearing.js';
import { ASK, FAIR, STAND } from './queue-terms.js';
import { LEASE, sleep, type Stage, tokenOf, until } from './stage.js';

/** The grant of a waiter in a queue by a message, and the end of its entry. */
export function describeClaims(stage: Stage): void {
  const { it } = words();
  const hearing = (client: string) => hear(stage, client);

  it('grants a waiter its lease in the first second of its wait, else a claim, which a repeated request makes the lease', async () => {
    const client = await hearing('b');
    const left = async (name: string) => (await stage.store.inspect(name))?.holders[0]?.remainingTime ?? 0;
    /** The grant of a waiter, and how long after its request for an entry. */
    const handOver = async (owner: string, leaseTime: number, arrival?: number) => {
      const name = stage.freshName();
      await stage.store.acquire({ name, owner: 'a:1', leaseTime: LEASE, queue: { ...FAIR, ...ASK } });
      const started = performance.now();
      const stand = () => {
        const queue = { ...FAIR, entry: { arrival }, ownWriteHold: undefined };
        return stage.other.acquire({ name, owner, leaseTime, queue });
      };
      await stand();
      await stage.store.release({ name, owner: 'a:1', queue: FAIR });
      await client.granted(owner);
      const took = performance.now() - started;
      const grant = client.heard.find((message) => message.type === 'granted' && message.owner === owner);
      assert.ok(grant?.type === 'granted');
      const confirm = async () => {
        assert.equal(tokenOf(await stand()), grant.fencingToken);
      };
      const release = () => stage.store.release({ name, owner, queue: FAIR });
      return { ...grant, name, took, confirm, release };
    };

    // An arrival long ago and, as after a step of the clock, one in the future.
    for (const [n, arrival] of [1, (Date.now() + 60_000) * 1_000].entries()) {
      const claim = await handOver(`b:1${String(n)}`, 4 * LEASE, arrival);
      assert.equal(claim.leaseTime, CLAIM);
      assert.ok((await left(claim.name)) <= CLAIM);
      await claim.confirm();
      assert.ok((await left(claim.name)) > 3 * LEASE);
      await claim.release();
    }

    const short = await handOver('b:2', CLAIM / 2, 1);
    assert.equal(short.leaseTime, CLAIM / 2);
    assert.ok((await left(short.name)) <= CLAIM / 2);
    await short.release();

    for (const leases of [2, 3]) {
      let grant = await handOver(`b:3${String(leases)}`, leases * LEASE);
      // Repeats the hand-over if this machine took too long.
      for (let n = 0; grant.took > CLAIM && n < 10; n++) {
        await grant.release();
        grant = await handOver(`b:4${String(leases)}${String(n)}`, leases * LEASE);
      }
      assert.equal(grant.leaseTime, leases * LEASE);
      const remaining = await left(grant.name);
      assert.ok(remaining > (leases - 1) * LEASE && remaining <= leases * LEASE, String(remaining));
      await grant.release();
    }
    client.close();
  });

  it('ends a claim that its owner does not confirm, and grants the lock to the next waiter', async () => {
    const name = stage.freshName();
    const client = await hearing('b');
    const stand = (owner: string, arrival: number) => {
      const queue = { ...FAIR, entry: { arrival }, ownWriteHold: undefined };
      return stage.other.acquire({ name, owner, leaseTime: LEASE, queue });
    };
    await stage.store.acquire({ name, owner: 'a:1', leaseTime: LEASE, queue: { ...FAIR, ...ASK } });
    await stand('b:1', 1);
    await stand('b:2', 2);
    await stage.store.release({ name, owner: 'a:1', queue: FAIR });
    await client.granted('b:1');
    await until(async () => (await stand('b:2', 2)).granted);
    assert.equal(await stage.other.renew([{ name, owner: 'b:1', leaseTime: LEASE }])[0], 'taken');
    await stage.other.release({ name, owner: 'b:2', queue: FAIR });
    client.close();
  });

  it('removes an entry, with or without the lease in the release', async () => {
    const name = stage.freshName();
    const client = await hearing('b');
    await stage.store.acquire({ name, owner: 'a:1', leaseTime: LEASE, queue: { ...FAIR, ...ASK } });
    for (const leaseTime of [undefined, LEASE]) {
      for (const owner of ['b:1', 'b:11']) {
        await stage.other.acquire({ name, owner, leaseTime: LEASE, queue: { ...FAIR, ...STAND } });
      }
      await stage.other.release({ name, owner: 'b:1', leaseTime, queue: FAIR });
      const queue = (await stage.store.inspect(name))?.queue;
      assert.deepEqual(
        queue?.map(({ owner }) => owner),
        ['b:11'],
      );
      await stage.other.release({ name, owner: 'b:11', leaseTime, queue: FAIR });
      assert.deepEqual((await stage.store.inspect(name))?.queue, []);
    }
    await stage.store.release({ name, owner: 'a:1', leaseTime: LEASE, queue: FAIR });
    client.close();
  });
  it('grants the lock to a live waiter behind stopped ones, after about a claim for each', async () => {
    const name = stage.freshName();
    const silent = ['x', 'y', 'z'];
    const subscriptions = await Promise.all(silent.map((client) => hearing(client)));
    // A client of this test only: suites that run at the same time may hear each other's messages.
    const client = await hearing('live');
    const LONG = 20 * LEASE;
    const stand = (owner: string, arrival: number) => {
      const queue = { ...FAIR, entry: { arrival }, ownWriteHold: undefined };
      return stage.other.acquire({ name, owner, leaseTime: LONG, queue });
    };
    await stage.store.acquire({ name, owner: 'a:1', leaseTime: LONG, queue: { ...FAIR, ...ASK } });
    for (const [n, each] of silent.entries()) await stand(`${each}:1`, n + 1);
    let reply = await stand('live:1', 9);
    await stage.store.release({ name, owner: 'a:1', queue: FAIR });
    const started = performance.now();
    // The waiter follows the store, and does nothing else.
    const told = () => client.heard.findLast(({ type }) => type === 'next');
    await until(() => told() !== undefined);
    for (let looks = 0; !reply.granted && looks < 10; looks++) {
      const message = told();
      const first = looks === 0 && message?.type === 'next' ? message.within : undefined;
      const wait = first ?? reply.retryAfter;
      assert.ok(wait <= 1.5 * CLAIM, String(wait));
      await sleep(wait + 1);
      reply = await stand('live:1', 9);
    }
    assert.ok(reply.granted);
    assert.ok(performance.now() - started > (silent.length - 1) * CLAIM);
    await stage.store.release({ name, owner: 'live:1', queue: FAIR });
    for (const each of [...subscriptions, client]) each.close();
  });
}
