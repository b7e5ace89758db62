import assert from './assert.js';
import type { AcquireReply } from '../../store/lock-store.js';
import { LEASE, sleep, type Stage, tokenOf, until } from './stage.js';
import { words } from '../test-framework.js';

/** The plain lock, and what all kinds have in common. */
export function describePlain(stage: Stage): void {
  const { describe, it } = words();

  describe('acquire', () => {
    it('grants a free lock with a token that is a safe integer', async () => {
      const token = tokenOf(
        await stage.store.acquire({ name: stage.freshName(), owner: 'a:1', leaseTime: LEASE }),
      );
      assert.ok(Number.isSafeInteger(token) && token > 0, String(token));
    });

    it('reports holder and time left to every other owner', async () => {
      const name = stage.freshName();
      await stage.store.acquire({ name, owner: 'a:1', leaseTime: LEASE });
      const reply = await stage.other.acquire({ name, owner: 'b:1', leaseTime: LEASE });
      assert.ok(!reply.granted);
      assert.equal(reply.holder, 'a:1');
      assert.ok(reply.retryAfter > LEASE / 2 && reply.retryAfter <= LEASE, String(reply.retryAfter));
      assert.notEqual(reply.undecided, true);
    });

    it('is granted again to its owner, and needs one release', async () => {
      const name = stage.freshName();
      const first = tokenOf(await stage.store.acquire({ name, owner: 'a:1', leaseTime: LEASE }));
      const again = tokenOf(await stage.store.acquire({ name, owner: 'a:1', leaseTime: LEASE }));
      assert.ok(again > first);
      assert.equal(await stage.store.release({ name, owner: 'a:1' }), 'released');
      assert.equal(await stage.store.inspect(name), null);
    });

    it('does not make the hold of its owner shorter, as a request does that arrives after an extension', async () => {
      const name = stage.freshName();
      const request = { name, owner: 'a:1', leaseTime: LEASE };
      tokenOf(await stage.store.acquire(request));
      assert.equal(await stage.store.renew([{ ...request, leaseTime: 4 * LEASE }])[0], 'held');
      tokenOf(await stage.store.acquire(request));
      const remaining = (await stage.store.inspect(name))?.holders[0]?.remainingTime ?? 0;
      assert.ok(remaining > 2 * LEASE, String(remaining));
      assert.equal(await stage.store.release({ name, owner: 'a:1' }), 'released');
    });

    it('is granted to one of many', async () => {
      const name = stage.freshName();
      const replies = await Promise.all(
        Array.from({ length: 50 }, (_, n) =>
          (n % 2 === 0 ? stage.store : stage.other).acquire({
            name,
            owner: `a:${String(n)}`,
            leaseTime: LEASE,
          }),
        ),
      );
      assert.equal(replies.filter((reply) => reply.granted).length, 1);
    });

    it('keeps names with any characters apart', async () => {
      const names = [
        'a b',
        'A b',
        'a b ',
        ' a b',
        '\u00e9',
        'e\u0301',
        'ключ',
        '{tag}:x',
        'a{b',
        'a}b',
        '{}',
        '*',
        'a\nb',
        '"',
        'x'.repeat(1_024),
      ];
      const owned = names.map((name, n) => ({ name, owner: `a:${String(n)}` }));
      for (const each of owned) tokenOf(await stage.store.acquire({ ...each, leaseTime: LEASE }));
      for (const { name, owner } of owned) {
        assert.equal((await stage.store.inspect(name))?.holders[0]?.owner, owner);
      }
      for (const each of owned) assert.equal(await stage.store.release(each), 'released');
    });
  });

  describe('expiry', () => {
    it('frees the lock of a silent holder after its lease, and not before', async () => {
      const name = stage.freshName();
      const before = performance.now();
      await stage.store.acquire({ name, owner: 'a:1', leaseTime: 150 });
      await until(async () => (await stage.other.acquire({ name, owner: 'b:1', leaseTime: LEASE })).granted);
      assert.ok(performance.now() - before >= 149, 'granted before the lease was over');
    });

    it('reports another owner to a release after the lease, which changes nothing', async () => {
      const name = stage.freshName();
      await stage.store.acquire({ name, owner: 'a:1', leaseTime: 20 });
      await until(async () => (await stage.other.acquire({ name, owner: 'b:1', leaseTime: LEASE })).granted);
      assert.equal(await stage.store.release({ name, owner: 'a:1' }), 'taken');
      assert.equal((await stage.store.inspect(name))?.holders[0]?.owner, 'b:1');
    });
  });

  describe('renew', () => {
    it('makes a hold last longer', async () => {
      const name = stage.freshName();
      await stage.store.acquire({ name, owner: 'a:1', leaseTime: 500 });
      assert.equal(await stage.store.renew([{ name, owner: 'a:1', leaseTime: LEASE }])[0], 'held');
      const remaining = (await stage.store.inspect(name))?.holders[0]?.remainingTime ?? 0;
      assert.ok(remaining > LEASE / 2, String(remaining));
    });

    it('never makes a hold shorter', async () => {
      const name = stage.freshName();
      await stage.store.acquire({ name, owner: 'a:1', leaseTime: LEASE });
      assert.equal(await stage.store.renew([{ name, owner: 'a:1', leaseTime: 100 }])[0], 'held');
      const remaining = (await stage.store.inspect(name))?.holders[0]?.remainingTime ?? 0;
      assert.ok(remaining > LEASE / 2, String(remaining));
    });

    it('answers for each hold, in a batch of any size', async () => {
      const mine = Array.from({ length: 250 }, () => stage.freshName());
      await Promise.all(mine.map((name) => stage.store.acquire({ name, owner: 'a:1', leaseTime: LEASE })));
      const [taken, deleted] = [mine[7], mine[120]] as [string, string];
      await stage.store.forceRelease(taken);
      await stage.store.forceRelease(deleted);
      await stage.other.acquire({ name: taken, owner: 'b:1', leaseTime: LEASE });
      const states = await Promise.all(
        stage.store.renew(mine.map((name) => ({ name, owner: 'a:1', leaseTime: LEASE }))),
      );
      mine.forEach((name, n) => {
        assert.equal(states[n], name === taken ? 'taken' : name === deleted ? 'deleted' : 'held');
      });
    });

    it('with a lease of 0 only reports the state', async () => {
      const name = stage.freshName();
      const look = () => stage.store.renew([{ name, owner: 'a:1', leaseTime: 0 }])[0];
      await stage.store.acquire({ name, owner: 'a:1', leaseTime: 1_000 });
      const before = (await stage.store.inspect(name))?.holders[0]?.remainingTime ?? 0;
      assert.equal(await look(), 'held');
      const after = (await stage.store.inspect(name))?.holders[0]?.remainingTime ?? Infinity;
      assert.ok(after <= before, `${String(before)} ms became ${String(after)}`);
      await stage.store.release({ name, owner: 'a:1' });
      assert.equal(await look(), 'deleted');
      await stage.other.acquire({ name, owner: 'b:1', leaseTime: LEASE });
      assert.equal(await look(), 'taken');
    });

    it('does not restore a lock', async () => {
      const name = stage.freshName();
      await stage.store.acquire({ name, owner: 'a:1', leaseTime: LEASE });
      await stage.store.release({ name, owner: 'a:1' });
      assert.equal(await stage.store.renew([{ name, owner: 'a:1', leaseTime: LEASE }])[0], 'deleted');
      assert.equal(await stage.store.inspect(name), null);
      await stage.store.acquire({ name, owner: 'a:2', leaseTime: 20 });
      await until(async () => (await stage.store.inspect(name)) === null);
      assert.equal(await stage.store.renew([{ name, owner: 'a:2', leaseTime: LEASE }])[0], 'deleted');
      assert.equal(await stage.store.inspect(name), null);
    });
  });

  describe('release', () => {
    it('frees the lock once, and is false after that', async () => {
      const name = stage.freshName();
      await stage.store.acquire({ name, owner: 'a:1', leaseTime: LEASE });
      assert.equal(await stage.store.release({ name, owner: 'a:1' }), 'released');
      assert.equal(await stage.store.release({ name, owner: 'a:1' }), 'deleted');
      // The holder that asks to keep the lock may have lost it.
      assert.equal(await stage.store.release({ name, owner: 'a:1', keepFor: LEASE }), 'deleted');
      assert.equal(await stage.store.inspect(name), null);
    });

    it('changes nothing for another owner', async () => {
      const name = stage.freshName();
      await stage.store.acquire({ name, owner: 'a:1', leaseTime: LEASE });
      assert.equal(await stage.other.release({ name, owner: 'b:1' }), 'taken');
      assert.equal((await stage.store.inspect(name))?.holders[0]?.owner, 'a:1');
    });

    it('keeps the lock from every owner for the requested time, and not longer', async () => {
      const name = stage.freshName();
      const last = tokenOf(await stage.store.acquire({ name, owner: 'a:1', leaseTime: LEASE }));
      const before = performance.now();
      assert.equal(await stage.store.release({ name, owner: 'a:1', keepFor: 300 }), 'released');
      for (const owner of ['b:1', 'a:1']) {
        const reply = await stage.other.acquire({ name, owner, leaseTime: LEASE });
        assert.ok(!reply.granted, `${owner} got it`);
        assert.ok(reply.retryAfter > 0 && reply.retryAfter <= 300, String(reply.retryAfter));
      }
      const [renewal] = stage.store.renew([{ name, owner: 'a:1', leaseTime: LEASE }]);
      assert.notEqual(await renewal, 'held');
      assert.notEqual(await stage.store.release({ name, owner: 'a:1' }), 'released', 'it was sent twice');
      let reply: AcquireReply | undefined;
      await until(async () => {
        reply = await stage.other.acquire({ name, owner: 'b:1', leaseTime: LEASE });
        return reply.granted;
      });
      assert.ok(performance.now() - before >= 299, 'granted too soon');
      assert.ok(reply !== undefined && tokenOf(reply) > last);
    });

    it('by force, frees a lock of any owner', async () => {
      const name = stage.freshName();
      await stage.store.acquire({ name, owner: 'a:1', leaseTime: LEASE });
      assert.equal(await stage.other.forceRelease(name), true);
      // A store of several nodes may answer before the last of them.
      await until(async () => !(await stage.other.forceRelease(name)));
      assert.equal(await stage.store.inspect(name), null);
    });
  });

  describe('fencing token', () => {
    it('grows with every acquisition of any owner', async () => {
      const name = stage.freshName();
      let last = 0;
      for (let n = 0; n < 50; n++) {
        const owner = `a:${String(n)}`;
        const token = tokenOf(
          await (n % 2 === 0 ? stage.store : stage.other).acquire({ name, owner, leaseTime: LEASE }),
        );
        assert.ok(token > last, `${String(token)} after ${String(last)}`);
        last = token;
        await stage.store.release({ name, owner });
      }
    });

    it('grows also when a lease has run out, and when a lock is taken by force', async () => {
      const name = stage.freshName();
      const first = tokenOf(await stage.store.acquire({ name, owner: 'a:1', leaseTime: 20 }));
      await until(async () => (await stage.other.inspect(name)) === null);
      const second = tokenOf(await stage.other.acquire({ name, owner: 'b:1', leaseTime: LEASE }));
      assert.ok(second > first, `${String(second)} after ${String(first)}, whose lease has run out`);
      await stage.other.forceRelease(name);
      const third = tokenOf(await stage.store.acquire({ name, owner: 'a:2', leaseTime: LEASE }));
      assert.ok(third > second, `${String(third)} after ${String(second)}, which was taken by force`);
      await stage.store.release({ name, owner: 'a:2' });
    });

    it('grows beyond the last token of a local hand-off', async () => {
      const name = stage.freshName();
      const granted = tokenOf(await stage.store.acquire({ name, owner: 'a:1', leaseTime: LEASE }));
      // Further than the clock gets in the meantime.
      const handedOn = granted + 60_000_000;
      await stage.store.release({ name, owner: 'a:1', fencingToken: handedOn });
      const next = tokenOf(await stage.other.acquire({ name, owner: 'b:1', leaseTime: LEASE }));
      assert.ok(next > handedOn);
      const further = next + 60_000_000;
      await stage.other.release({ name, owner: 'b:1', fencingToken: further, keepFor: 20 });
      let last = 0;
      await until(async () => {
        const reply = await stage.store.acquire({ name, owner: 'a:2', leaseTime: LEASE });
        if (reply.granted) last = reply.fencingToken;
        return reply.granted;
      });
      assert.ok(last > further);
    });
  });

  it('inspects holder, time and token, and is null for a free lock', async () => {
    const name = stage.freshName();
    assert.equal(await stage.store.inspect(name), null);
    const token = tokenOf(await stage.store.acquire({ name, owner: 'a:1', leaseTime: LEASE }));
    const stored = await stage.other.inspect(name);
    // One of several nodes may have given a greater token that no owner has got.
    assert.ok((stored?.fencingToken ?? 0) >= token);
    assert.ok(stored !== null);
    assert.equal(stored.holders.length, 1);
    const [holder] = stored.holders;
    assert.equal(holder?.owner, 'a:1');
    assert.ok(Math.abs((holder.since ?? 0) - Date.now()) < 60_000, String(holder.since));
    assert.ok(holder.remainingTime <= LEASE && holder.remainingTime > LEASE / 2);
    assert.equal(holder.mode, 'exclusive');
    assert.equal(stored.kind, 'lock');
    assert.deepEqual(stored.queue, []);
    await sleep(30);
    await Promise.all(stage.store.renew([{ name, owner: 'a:1', leaseTime: LEASE * 2 }]));
    const later = (await stage.other.inspect(name))?.holders[0]?.since;
    assert.ok(Math.abs((later ?? 0) - (holder.since ?? 0)) < 20, 'the acquisition is as old as before');
  });
}
