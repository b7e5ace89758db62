import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { LockConfigError, LockService, type LockStore, LockUnavailableError } from '../../../lib/index.js';
import type { ConnectionChange, LossMessage } from '../../../lib/store/index.js';
import { deferred } from '../../doubles/deferred.js';
import { until } from '../../scenarios/until.js';
import { storeOn, type ScriptedMember, scriptedMembers } from './scripted-member.js';

const LEASE = 30_000;
const request = { name: 'a', owner: 'me', leaseTime: LEASE };

/** What is about the order of answers only; real servers are in the other specs. */
describe('QuorumLockStore', () => {
  let members: ScriptedMember[];
  let store: LockStore;

  /** Restarts three nodes empty. They are not to vote, although they have been up for longer than the usual lease of 500 ms. */
  async function expectNoVoteOfRestarted(short: LockStore): Promise<void> {
    for (const member of members.slice(2)) {
      member.restart();
      await member.store.forceRelease('a');
    }
    // They are noticed.
    await short.health();
    await sleep(600);
    await expect(short.acquire({ ...request, owner: 'other', leaseTime: 500 })).rejects.toMatchObject({
      code: 'LOCK_UNAVAILABLE',
    });
  }

  beforeEach(async () => {
    members = scriptedMembers(5);
    store = storeOn(members, LEASE);
    // All members have a vote.
    await store.health();
  });

  afterEach(() => store.close());

  const unanswered = () => new LockUnavailableError('a', { cause: new Error('silent') });
  const unsent = () => new LockUnavailableError('a', { cause: new Error('down'), effect: 'refused' });
  const holders = () =>
    Promise.all(members.map(async (member) => (await member.store.inspect('a'))?.holders[0]?.owner));
  const tokenOf = async () => {
    const reply = await store.acquire(request);
    return reply.granted ? reply.fencingToken : 0;
  };

  it('has no queues, and takes no plain lock for a request with a queue', async () => {
    const queue = {
      kind: 'fair',
      mode: 'exclusive',
      capacity: 1,
      entry: undefined,
      ownWriteHold: undefined,
    } as const;
    await expect(store.acquire({ ...request, queue })).rejects.toMatchObject({ code: 'LOCK_CONFIG' });
    expect((await holders()).every((owner) => owner === undefined)).toBe(true);
    const locks = new LockService({ store });
    for (const get of ['getFairLock', 'getReadWriteLock'] as const)
      expect(() => locks[get]('a')).toThrow(/a majority of queues is not a queue.*Use connection/);
    expect(() => locks.getSemaphore('a', 2)).toThrow(LockConfigError);
  });

  it('repeats a release behind a request that may arrive after it', async () => {
    const [gate, arrived] = [deferred(), deferred()];
    members[4]!.store.beforeAcquire = () => gate.promise;
    members[4]!.store.afterAcquire = arrived.resolve;
    await store.acquire(request);
    expect(await store.release(request)).toBe('released');
    expect(await holders()).toEqual(members.map(() => undefined));
    gate.resolve();
    await arrived.promise;
    await until(async () => (await holders())[4] === undefined);
  });

  it('repeats it also where a later request to the same node has been answered', async () => {
    const { store: late } = members[4]!;
    const acquire = late.acquire.bind(late);
    late.beforeAcquire = () => Promise.reject(unanswered());
    await store.acquire(request);
    late.beforeAcquire = () => undefined;
    expect(await store.renew([request])[0]).toBe('held');
    await until(async () => (await holders())[4] === 'me');
    expect(await store.release(request)).toBe('released');
    // The first request arrives only now, over a connection that is gone.
    await acquire(request);
    await until(async () => (await holders())[4] === undefined);
  });

  it('frees what a top-up takes that arrives after its lease has been lost', async () => {
    members[4]!.store.beforeAcquire = () => Promise.reject(unanswered());
    await store.acquire(request);
    const gate = deferred();
    members[4]!.store.beforeAcquire = () => gate.promise;
    expect(await store.renew([request])[0]).toBe('held');
    await until(() => members[4]!.store.calls.acquire === 2);
    for (const member of members.slice(0, 3)) await member.store.forceRelease('a');
    expect(await store.renew([request])[0]).toBe('deleted');
    await until(async () => (await holders()).every((owner) => owner === undefined));
    const arrived = deferred();
    members[4]!.store.afterAcquire = arrived.resolve;
    gate.resolve();
    await arrived.promise;
    await until(async () => (await holders())[4] === undefined);
  });

  /** One clock is an hour ahead, so that the others have to be told the token in a second request. */
  async function setAhead(member: ScriptedMember): Promise<void> {
    const ahead = (Date.now() + 3_600_000) * 1_000;
    await member.store.acquire({ ...request, owner: 'former', leastToken: ahead });
    await member.store.release({ name: 'a', owner: 'former' });
    for (const {
      store: { calls },
    } of members)
      calls.acquire = 0;
  }

  it('takes nothing for an owner any more that has given up while it was still asking', async () => {
    await setAhead(members[0]!);
    const gate = deferred();
    for (const member of members.slice(2)) member.store.afterAcquire = () => gate.promise;
    const acquiring = store.acquire(request);
    await sleep(5);
    await store.release(request);
    gate.resolve();
    await acquiring.catch(() => undefined);
    await sleep(5);
    expect(members.map(({ store: { calls } }) => calls.acquire)).toEqual([1, 1, 1, 1, 1]);
    expect(await holders()).toEqual(members.map(() => undefined));
  });

  it('tops up the nodes that do not hold what a majority does, with its token', async () => {
    for (const member of members.slice(3)) member.store.beforeAcquire = () => Promise.reject(unsent());
    const token = await tokenOf();
    expect((await holders()).slice(3)).toEqual([undefined, undefined]);
    for (const member of members.slice(3)) member.store.beforeAcquire = () => undefined;
    expect(await store.renew([request])[0]).toBe('held');
    await until(async () => (await holders()).every((owner) => owner === 'me'));
    for (const member of members.slice(3)) {
      expect((await member.store.inspect('a'))?.fencingToken).toBeGreaterThanOrEqual(token);
      member.store.calls.release = 0;
    }
    expect(await store.release(request)).toBe('released');
    expect(await holders()).toEqual(members.map(() => undefined));
    // They have answered, so nothing can arrive behind it.
    expect(members.slice(3).map((member) => member.store.calls.release)).toEqual([1, 1]);
  });

  it('tops up nothing that has been released meanwhile', async () => {
    members[4]!.store.beforeAcquire = () => Promise.reject(unanswered());
    await store.acquire(request);
    members[4]!.store.beforeAcquire = () => undefined;
    const gate = deferred();
    members[4]!.store.onRenew = () => gate.promise;
    expect(await store.renew([request])[0]).toBe('held');
    await store.release(request);
    gate.resolve();
    await sleep(10);
    expect(await holders()).toEqual(members.map(() => undefined));
  });

  describe('an extension', () => {
    it('gives a member that answers late no more than what is left by then', async () => {
      await store.acquire({ ...request, leaseTime: 20_000 });
      const gate = deferred();
      const { store: late } = members[0]!;
      late.onRenew = () => gate.promise;
      await late.forceRelease('a');
      expect(await store.renew([{ ...request, leaseTime: 0 }])[0]).toBe('held');
      await sleep(100);
      gate.resolve();
      await until(async () => (await holders())[0] === 'me');
      expect((await late.inspect('a'))?.holders[0]?.remainingTime).toBeLessThanOrEqual(19_900);
    });

    it('for longer than the usual lease keeps nodes that restart from voting for so long', async () => {
      const short = storeOn(members, 500);
      await short.acquire({ ...request, leaseTime: 500 });
      await Promise.all(short.renew([{ ...request, leaseTime: 60_000 }]));
      await expectNoVoteOfRestarted(short);
    });
  });

  it('keeps nodes that restart from voting for as long as a released lock stays taken', async () => {
    const short = storeOn(members, 500);
    await short.acquire({ ...request, leaseTime: 500 });
    expect(await short.release({ name: 'a', owner: 'me', keepFor: 60_000 })).toBe('released');
    await expectNoVoteOfRestarted(short);
    await short.close();
  });

  describe('after a split vote', () => {
    const OTHERS = ['x', 'y', 'z'];
    const free = () =>
      Promise.all(
        members.map(({ store: scripted }) =>
          Promise.all(OTHERS.map((owner) => scripted.release({ name: 'a', owner }))),
        ),
      );
    const calls = () => members.map((member) => member.store.calls.acquire);

    beforeEach(async () => {
      for (const [index, owner] of OTHERS.entries())
        await members[index]!.store.acquire({ ...request, owner });
      await store.acquire({ ...request, owner: 'splitter' });
      await until(async () => (await holders()).slice(3).every((owner) => owner === undefined));
      for (const member of members) member.store.calls.acquire = 0;
    });

    it('asks one member first, and takes nothing of the others when that one refuses', async () => {
      // The messages of the others may have woken the caller already, so it asks this one again soon.
      const undecided = { granted: false, holder: 'x', undecided: true, retryAfter: 50 };
      expect(await store.acquire(request)).toMatchObject(undecided);
      expect(calls()).toEqual([1, 0, 0, 0, 0]);
    });

    it('goes on to the others at once when that one grants', async () => {
      await free();
      expect(await store.acquire(request)).toMatchObject({ granted: true });
      expect(calls()).toEqual([1, 1, 1, 1, 1]);
    });

    it('asks the others, too, when the first names the same owner again: that hold may be left behind', async () => {
      await members[1]!.store.release({ name: 'a', owner: 'y' });
      await members[2]!.store.release({ name: 'a', owner: 'z' });
      expect(await store.acquire(request)).toMatchObject({ granted: false, holder: 'x', undecided: true });
      expect(await store.acquire({ ...request, owner: 'next' })).toMatchObject({ granted: true });
    });

    it('asks the next one when the first is silent, and waits for it only once', async () => {
      await free();
      const gate = deferred();
      members[0]!.store.beforeAcquire = () => gate.promise;
      members[0]!.store.onRelease = () => gate.promise;
      expect(await store.acquire(request)).toMatchObject({ granted: true });
      expect(await store.release(request)).toBe('released');
      const order: number[] = [];
      for (const [index, { store: scripted }] of members.entries()) {
        const before = scripted.beforeAcquire;
        scripted.beforeAcquire = () => {
          order.push(index);
          return before();
        };
      }
      expect(await store.acquire({ ...request, owner: 'next' })).toMatchObject({ granted: true });
      expect(order[0]).toBe(1);
      gate.resolve();
      // What has arrived late is given back.
      await until(async () => (await holders())[0] !== 'me');
    });

    it('does not count the grant of a first member that has restarted before the others were asked', async () => {
      await free();
      for (const member of members.slice(3)) member.store.beforeAcquire = () => Promise.reject(unanswered());
      members[0]!.store.afterAcquire = () => {
        members[0]!.reconnect();
      };
      await expect(store.acquire(request)).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    });
  });

  describe('a forced release', () => {
    it('does not reach a silent member later, when another owner may have the lock there', async () => {
      await store.acquire(request);
      const gate = deferred();
      const { store: silent } = members[4]!;
      const forceRelease = silent.forceRelease.bind(silent);
      silent.inspect = () => gate.promise.then(() => null);
      silent.forceRelease = (name) => gate.promise.then(() => forceRelease(name));
      expect(await store.forceRelease('a')).toBe(true);
      const held = await Promise.all(members.slice(0, 4).map((member) => member.store.inspect('a')));
      expect(held).toEqual([null, null, null, null]);
      // It has been told to let go of the owner that the others have named.
      await until(() => silent.released.some(({ owner }) => owner === 'me'));
      await silent.acquire({ ...request, owner: 'next' });
      gate.resolve();
      await sleep(20);
      expect(await silent.acquire({ ...request, owner: 'other' })).toMatchObject({
        granted: false,
        holder: 'next',
      });
    });

    it('leaves an owner alone that gets the lock meanwhile on nodes that have not learned the token', async () => {
      const ahead = (Date.now() + LEASE / 3) * 1_000;
      await members[0]!.store.acquire({ ...request, owner: 'former', leastToken: ahead });
      await members[0]!.store.release({ name: 'a', owner: 'former' });
      const [late, telling] = [deferred(), deferred()];
      for (const member of members.slice(1)) member.store.beforeAcquire = () => late.promise;
      const acquiring = tokenOf();
      await until(async () => (await holders())[0] === 'me');
      members[0]!.store.beforeAcquire = () => telling.promise;
      const releasing = store.forceRelease('a');
      await until(() => members[0]!.store.calls.acquire === 3);
      late.resolve();
      const token = await acquiring;
      expect(token).toBeGreaterThan(ahead);
      telling.resolve();
      await releasing;
      expect(await holders()).toEqual([undefined, 'me', 'me', 'me', 'me']);
      members[0]!.store.beforeAcquire = () => Promise.reject(unanswered());
      const other = { ...request, owner: 'next' };
      expect(await store.acquire(other)).toMatchObject({ granted: false, holder: 'me' });
      expect(await store.forceRelease('a')).toBe(true);
      const next = await store.acquire(other);
      expect(next.granted && next.fencingToken).toBeGreaterThan(token);
    });

    it.each(['the token', 'the forced release'])(
      'leaves nothing behind of an owner that releases the lock meanwhile, where %s reaches too few',
      async (what) => {
        await store.acquire(request);
        const gate = deferred();
        const untold = what === 'the token' ? 3 : 1;
        for (const [index, { store: scripted }] of members.entries()) {
          scripted.beforeAcquire = () =>
            gate.promise.then(() => (index < untold ? Promise.reject(unanswered()) : undefined));
          scripted.forceRelease = () => Promise.reject(unanswered());
        }
        const releasing = store.forceRelease('a');
        await until(() => members.every((member) => member.store.calls.acquire === 2));
        expect(await store.release(request)).toBe('released');
        gate.resolve();
        await expect(releasing).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE', effect: 'unknown' });
        await until(async () => (await holders()).every((owner) => owner === undefined));
      },
    );

    it('gives the lock to no owner that has released it, where the token arrives only after that', async () => {
      await store.acquire(request);
      const late: (() => Promise<unknown>)[] = [];
      for (const { store: scripted } of members) {
        const acquire = scripted.acquire.bind(scripted);
        scripted.acquire = (telling) => {
          late.push(() => acquire(telling));
          return Promise.reject(unanswered());
        };
      }
      const outcomes = members.map(({ node }) => ({ node, outcome: 'error' }));
      await expect(store.forceRelease('a')).rejects.toMatchObject({ effect: 'unknown', outcomes });
      expect(await store.release(request)).toBe('released');
      for (const arrive of late) await arrive();
      await sleep(20);
      expect(await holders()).toEqual(members.map(() => undefined));
    });
  });

  it('takes away a hold that has no end, without giving it one, and none of another kind', async () => {
    await store.acquire(request);
    expect(await store.forceRelease('a', 'shared')).toBe(false);
    expect((await holders()).every((owner) => owner === 'me')).toBe(true);
    for (const { store: scripted } of members) {
      const inspect = scripted.inspect.bind(scripted);
      scripted.inspect = async (name) => {
        const state = await inspect(name);
        const endless = state?.holders.map((holder) => ({ ...holder, remainingTime: Infinity }));
        return state && { ...state, holders: endless ?? [] };
      };
      scripted.calls.acquire = 0;
    }
    expect(await store.forceRelease('a')).toBe(true);
    expect(await holders()).toEqual(members.map(() => undefined));
    expect(members.map((member) => member.store.calls.acquire)).toEqual(members.map(() => 0));
    expect(await store.forceRelease('a')).toBe(false);
  });

  it('passes on what a majority tells a client of its losses, once, and nothing after the close', async () => {
    const told: LossMessage[] = [];
    const subscription = await store.subscribeToLosses?.('me', (message) => told.push(message));
    expect(subscription?.active).toBe(true);
    const mine = { ...request, owner: 'me:1' };
    const forced = { by: 'console', reason: 'maintenance' };
    await store.acquire(mine);
    const lose = async (...indexes: number[]) => {
      for (const index of indexes) await members[index]!.store.forceRelease('a', undefined, forced);
      await sleep(0);
    };
    await lose(0, 1, 2);
    expect(told).toEqual([]);
    await lose(3, 4);
    await until(() => told.length > 0);
    expect(told).toEqual([{ type: 'lost', owner: 'me:1', forced }]);
    const asked = { id: '1', name: 'a', owner: 'me:1', by: 'console', reason: undefined };
    await members[0]!.store.requestRelease(asked);
    await sleep(0);
    expect(told.slice(1)).toEqual([{ ...asked, type: 'asked' }]);
    subscription?.close();
    await members[0]!.store.requestRelease(asked);
    await sleep(0);
    expect(told).toHaveLength(2);
  });

  it('founds a new quorum as soon as its members are connected, and not while they are not', async () => {
    const listeners: ((change: ConnectionChange) => void)[] = [];
    members = scriptedMembers(3);
    for (const member of members) {
      (member.store as LockStore).onConnectionChange = (listener) => void listeners.push(listener);
    }
    const fresh = storeOn(members, LEASE);
    const tell = (connected: boolean) => {
      for (const [index, listener] of listeners.entries())
        listener({ node: `node-${String(index)}`, connected });
    };
    tell(false);
    await sleep(5);
    expect(members.map(({ chartered }) => chartered)).toEqual([undefined, undefined, undefined]);
    tell(true);
    await until(() => members.every(({ chartered, runId }) => chartered?.run === runId));
    await fresh.close();
  });

  it('keeps nothing in mind of what has been released, or was never granted', async () => {
    for (let n = 0; n < 20; n++) {
      await store.acquire({ ...request, owner: `owner-${String(n)}` });
      await store.acquire({ ...request, owner: `late-${String(n)}` });
      await store.release({ ...request, owner: `owner-${String(n)}` });
    }
    const { quorum } = store as unknown as { quorum: { holds: { size: number } } };
    expect(quorum.holds.size).toBe(0);
  });
});
