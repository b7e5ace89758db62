import assert from './assert.js';
import { LEASE, type Stage, tokenOf, until } from './stage.js';
import { words } from '../test-framework.js';

/** Several plain locks in one step. */
export function describeGroups(stage: Stage): void {
  const { it } = words();

  const owners = async (names: readonly string[]) =>
    await Promise.all(names.map(async (name) => (await stage.store.inspect(name))?.holders[0]?.owner));
  /** Names of one location: if hash tags decide, these names share one. */
  const freshNames = (count: number) => {
    const tag = stage.freshName();
    return Array.from({ length: count }, (_, n) => `{${tag}}:${String(n)}`);
  };

  it('names one location for a name, always the same', async () => {
    const [one, two] = freshNames(2) as [string, string];
    assert.equal(typeof stage.store.locationOf(one), 'string');
    assert.equal(stage.store.locationOf(one), stage.store.locationOf(two));
    assert.equal(stage.store.locationOf(one), stage.other.locationOf(one));
    await stage.store.acquireAll({ names: [one, two], owner: 'a:1', leaseTime: 1_000 });
  });

  it('grants all names to one owner, each with a token of its own that grows', async () => {
    const names = freshNames(50);
    const request = { names, owner: 'a:1', leaseTime: LEASE };
    const first = await stage.store.acquireAll(request);
    assert.ok(first.granted);
    assert.equal(first.fencingTokens.length, 50);
    assert.deepEqual(new Set(await owners(names)), new Set(['a:1']));
    const again = await stage.store.acquireAll(request);
    assert.ok(again.granted, 'a request that is sent twice changes nothing');
    again.fencingTokens.forEach((token, n) => {
      assert.ok(token > (first.fencingTokens[n] ?? Infinity));
    });
    for (const name of names) assert.equal(await stage.store.release({ name, owner: 'a:1' }), 'released');
    for (const [n, name] of names.slice(0, 3).entries()) {
      const token = tokenOf(await stage.other.acquire({ name, owner: 'b:1', leaseTime: LEASE }));
      assert.ok(token > (again.fencingTokens[n] ?? Infinity));
    }
  });

  it('answers each release of several that are asked for together', async () => {
    const { store } = stage;
    const [mine, gone, taken, last] = freshNames(4) as [string, string, string, string];
    const owner = 'a:1';
    const names = [mine, gone, taken, last];
    assert.ok((await store.acquireAll({ names, owner, leaseTime: LEASE })).granted);
    for (const name of [gone, taken]) await store.release({ name, owner });
    await stage.other.acquire({ name: taken, owner: 'b:1', leaseTime: LEASE });
    const queue = store.queues && ({ kind: 'lock', mode: 'exclusive', capacity: 1 } as const);
    const give = () => names.map((name) => store.release({ name, owner, leaseTime: LEASE, queue }));
    const given = store.together === undefined ? give() : store.together(give);
    assert.deepEqual(await Promise.all(given), ['released', 'deleted', 'taken', 'released']);
    assert.deepEqual(await owners(names), [undefined, undefined, 'b:1', undefined]);
    // A later one is sent by itself.
    assert.equal(await store.release({ name: mine, owner, leaseTime: LEASE, queue }), 'deleted');
  });

  it('grants all names for the lease, and not longer', async () => {
    const names = freshNames(2);
    const before = performance.now();
    assert.ok((await stage.store.acquireAll({ names, owner: 'a:1', leaseTime: 150 })).granted);
    for (const name of names) {
      const [hold] = (await stage.other.inspect(name))?.holders ?? [];
      assert.ok((hold?.remainingTime ?? 0) <= 150, `held for ${String(hold?.remainingTime)} ms more`);
    }
    for (const name of names) {
      await until(async () => (await stage.other.acquire({ name, owner: 'b:1', leaseTime: LEASE })).granted);
      assert.ok(performance.now() - before >= 149, 'granted before the lease was over');
    }
  });

  it('does not make a hold of its owner shorter, as a request does that arrives after an extension', async () => {
    const names = freshNames(2);
    const [long, short] = names as [string, string];
    const request = { names, owner: 'a:1', leaseTime: LEASE };
    assert.ok((await stage.store.acquireAll(request)).granted);
    const [extended] = stage.store.renew([{ name: long, owner: 'a:1', leaseTime: 4 * LEASE }]);
    assert.equal(await extended, 'held');
    assert.ok((await stage.store.acquireAll(request)).granted);
    const left = async (name: string) => (await stage.store.inspect(name))?.holders[0]?.remainingTime ?? 0;
    assert.ok((await left(long)) > 2 * LEASE, String(await left(long)));
    assert.ok((await left(short)) <= LEASE, String(await left(short)));
    for (const name of names) await stage.store.release({ name, owner: 'a:1' });
  });

  it('gives the tokens in the order of the names', async () => {
    const names = freshNames(3);
    const reply = await stage.store.acquireAll({ names, owner: 'a:1', leaseTime: LEASE });
    assert.ok(reply.granted);
    for (const [n, name] of names.entries()) {
      // One of several nodes may have given a greater token that no owner has got.
      assert.ok(
        ((await stage.other.inspect(name))?.fencingToken ?? 0) >= (reply.fencingTokens[n] ?? Infinity),
      );
    }
  });

  it('takes no name when one is busy, and reports that name, the time left and the holder', async () => {
    const names = freshNames(3);
    await stage.other.acquire({ name: names[1] ?? '', owner: 'b:1', leaseTime: LEASE });
    const reply = await stage.store.acquireAll({ names, owner: 'a:1', leaseTime: LEASE * 10 });
    assert.ok(!reply.granted);
    assert.equal(reply.name, names[1]);
    assert.equal(reply.holder, 'b:1');
    assert.ok(reply.retryAfter > LEASE / 2 && reply.retryAfter <= LEASE, String(reply.retryAfter));
    assert.notEqual(reply.undecided, true);
    assert.deepEqual(await owners(names), [undefined, 'b:1', undefined]);
  });

  it('takes no name while one is kept after its release', async () => {
    const names = freshNames(2);
    const [free, kept] = names as [string, string];
    await stage.other.acquire({ name: kept, owner: 'b:1', leaseTime: LEASE });
    await stage.other.release({ name: kept, owner: 'b:1', keepFor: 300 });
    const before = performance.now();
    const request = { names, owner: 'a:1', leaseTime: LEASE };
    const reply = await stage.store.acquireAll(request);
    assert.ok(!reply.granted, 'granted too soon');
    assert.equal(reply.name, kept);
    assert.ok(reply.retryAfter > 0 && reply.retryAfter <= 300, String(reply.retryAfter));
    assert.deepEqual(await owners([free]), [undefined]);
    await until(async () => (await stage.store.acquireAll(request)).granted);
    assert.ok(performance.now() - before >= reply.retryAfter - 1, 'granted too soon');
  });

  it('never grants one name to two owners, in any overlap of groups', async () => {
    const names = freshNames(4);
    const replies = await Promise.all(
      Array.from({ length: 40 }, (_, n) =>
        (n % 2 === 0 ? stage.store : stage.other).acquireAll({
          names: [0, 1, 2].map((k) => names[(n + k) % 4] ?? ''),
          owner: `a:${String(n)}`,
          leaseTime: LEASE,
        }),
      ),
    );
    assert.equal(replies.filter((reply) => reply.granted).length, 1);
  });

  it('gives no token below the requested least token', async () => {
    const [name, second] = freshNames(2) as [string, string];
    const far = (Date.now() + 3_600_000) * 1_000;
    const reply = await stage.store.acquireAll({
      names: [name, second],
      owner: 'a:1',
      leaseTime: LEASE,
      leastToken: far,
    });
    assert.ok(reply.granted && reply.fencingTokens.length === 2);
    for (const token of reply.fencingTokens) assert.ok(token >= far);
    // Further than the next token would be by itself.
    const more = far + 60_000_000;
    assert.ok(
      tokenOf(await stage.store.acquire({ name, owner: 'a:1', leaseTime: LEASE, leastToken: more })) >= more,
    );
    await stage.store.release({ name, owner: 'a:1' });
    const last = tokenOf(await stage.other.acquire({ name, owner: 'b:1', leaseTime: LEASE }));
    assert.ok(last > more);
    await stage.other.release({ name, owner: 'b:1' });
    // The least token may have been given already.
    const next = { name, owner: 'a:2', leaseTime: LEASE, leastToken: last };
    assert.ok(tokenOf(await stage.store.acquire(next)) > last);
  });

  it('gives tokens beyond the last ones of local hand-offs', async () => {
    const names = freshNames(2);
    const last: number[] = [];
    for (const name of names) {
      const token = tokenOf(await stage.other.acquire({ name, owner: 'b:1', leaseTime: LEASE }));
      // Further than the clock gets in the meantime.
      last.push(token + 60_000_000);
      await stage.other.release({ name, owner: 'b:1', fencingToken: token + 60_000_000 });
    }
    const reply = await stage.store.acquireAll({ names, owner: 'a:1', leaseTime: LEASE });
    assert.ok(reply.granted);
    for (const [n, token] of reply.fencingTokens.entries()) assert.ok(token > (last[n] ?? Infinity));
  });
}
