import { describe, expect, it } from '@jest/globals';
import { LockKindMismatchError, LockUnavailableError } from '../../../lib/index.js';
import { type Answers, Ballot } from '../../../lib/stores/quorum/ballot.js';
import { askMajority, majorityFor, noMajority } from '../../../lib/stores/quorum/outcomes.js';
import { Quorum } from '../../../lib/stores/quorum/quorum.js';
import { quorumHealth } from '../../../lib/stores/quorum/quorum-health.js';
import { QuorumLockStore } from '../../../lib/stores/quorum/quorum-lock-store.js';
import { subscribeToReleases } from '../../../lib/stores/quorum/subscriptions.js';
import type { HealthStatus, StoreHealth, Subscription } from '../../../lib/store/index.js';
import { deferred } from '../../doubles/deferred.js';
import { scriptedMembers } from './scripted-member.js';

const MISMATCH = new LockKindMismatchError('a', { expected: 'plain lock', found: 'string' });
const timeout = () => {
  const cause = Object.assign(new Error('late'), { name: 'CommandTimeout' });
  return new LockUnavailableError('a', { cause });
};
const unanswered = () => new LockUnavailableError('a', { cause: new Error('silent') });

const quorumOfMembers = (count: number) => {
  const members = scriptedMembers(count);
  return new Quorum(members, 4_000) as { members: typeof members } & Quorum;
};

describe('The answers of the members', () => {
  it('that are too few are an error, which names something else under the name before all others', async () => {
    const quorum = quorumOfMembers(3);
    const [first, second] = quorum.members;
    const asking = askMajority(quorum, 'a', (store) => {
      if (store === first?.store) return Promise.reject(unanswered());
      return store === second?.store ? Promise.reject(MISMATCH) : Promise.resolve('yes');
    });
    await expect(asking).rejects.toBe(MISMATCH);
    const failing = askMajority(quorum, 'a', () => Promise.reject(timeout()));
    const outcomes = quorum.members.map(({ node }) => ({ node, outcome: 'timeout' }));
    await expect(failing).rejects.toMatchObject({ effect: 'unknown', key: 'a', outcomes });
  });

  it('say of each member what it has done', () => {
    const error = unanswered();
    const late = timeout();
    const cast: Answers<unknown> = [
      { value: 'released' },
      { value: 'taken' },
      { value: 'deleted' },
      { error },
      { error: late },
      undefined,
    ];
    expect(noMajority(quorumOfMembers(6), 'a', cast, 'unknown')).toHaveProperty('outcomes', [
      { node: 'node-0', outcome: 'granted' },
      { node: 'node-1', outcome: 'taken' },
      { node: 'node-2', outcome: 'taken' },
      { node: 'node-3', outcome: 'error', error },
      { node: 'node-4', outcome: 'timeout', error: late },
      { node: 'node-5', outcome: 'timeout' },
    ]);
  });

  it('say why no majority holds a lock: something else, then another owner, then none', async () => {
    const reasonOf = async (...values: (string | LockKindMismatchError)[]) => {
      const quorum = quorumOfMembers(5);
      const ballot = new Ballot<string | LockKindMismatchError>(quorum);
      for (const index of quorum.members.keys()) {
        const { [index]: value } = values;
        void ballot.enter(index, value === undefined ? Promise.reject(unanswered()) : Promise.resolve(value));
      }
      return await majorityFor(quorum, 'a', ballot, 'held');
    };
    expect(await reasonOf('deleted', 'held', 'deleted', 'deleted')).toBe('deleted');
    expect(await reasonOf('deleted', 'taken', 'deleted')).toBe('taken');
    expect(await reasonOf('deleted', 'taken', MISMATCH)).toBe(MISMATCH);
    expect(await reasonOf('held', 'held', 'taken', 'held')).toBe('held');
    await expect(reasonOf('held', 'taken')).rejects.toMatchObject({
      code: 'LOCK_UNAVAILABLE',
      effect: 'unknown',
    });
  });
});

describe('The health of a quorum', () => {
  const report = (node: string, status: HealthStatus = 'up', runId = node): StoreHealth => ({
    status,
    nodes: [{ node, status, latency: 1, error: status === 'up' ? undefined : 'refused', runId }],
    warnings: status === 'up' ? [] : [{ code: 'down', node, message: `${node} is down` }],
  });
  const healthOf = (reports: readonly StoreHealth[], quarantines: readonly (number | undefined)[]) =>
    quorumHealth(reports, {
      charters: { quarantineOf: (index: number) => quarantines[index], current: () => undefined },
      needed: 2,
    } as unknown as Quorum);

  it('is degraded with a minority that does not vote, and down with a majority', () => {
    const reports = [report('a'), report('b'), report('c')];
    const one = healthOf(reports, [500, 0, 0]);
    expect(one).toMatchObject({
      status: 'degraded',
      nodes: [{ status: 'degraded', quarantine: 500 }, {}, {}],
    });
    expect(one.nodes[0]?.error).toMatch(/restarted/);
    const two = healthOf(reports, [500, Infinity, 0]);
    expect(two.status).toBe('down');
    expect(two.nodes[1]?.error).toMatch(/INFO/);
    expect(two.nodes[2]?.status).toBe('up');
  });

  it('tells of a member that is down as its store does, whatever its run was', () => {
    const reports = [report('a', 'down'), report('b'), report('c', 'up', 'b')];
    const health = healthOf(reports, [500, 0, 0]);
    expect(health).toMatchObject({
      status: 'degraded',
      nodes: [{ status: 'down', error: 'refused', quarantine: 500 }, {}, {}],
    });
    expect(health.warnings.map(({ code }) => code)).toEqual(['down', 'same-server']);
    expect(healthOf(reports, [0, 0, 500]).status).toBe('down');
  });
});

describe('The notes of a quorum', () => {
  it('give the label that any member knows, and none where no member knows it', async () => {
    const quorum = quorumOfMembers(3);
    const { labels } = new QuorumLockStore(quorum.members, 4_000);
    await quorum.members[2]?.store.labels.keep('client', 'api-1', 60_000);
    expect(await labels.find('client')).toBe('api-1');
    expect(await labels.find('other')).toBeUndefined();
    await labels.keep('other', 'api-2', 60_000);
    for (const { store } of quorum.members) expect(await store.labels.find('other')).toBe('api-2');
  });

  it('give the waits that a majority knows, until they are forgotten', async () => {
    const quorum = quorumOfMembers(5);
    const { waits } = new QuorumLockStore(quorum.members, 4_000);
    const keepAt = async (index: number, note: string) => {
      await quorum.members[index]?.store.waits.keep('client', note, 60_000);
    };
    for (const [index, note] of ['x', 'y', 'x', 'z'].entries()) await keepAt(index, note);
    expect(await waits.find('client')).toBeUndefined();
    await keepAt(4, 'x');
    expect(await waits.find('client')).toBe('x');
    await waits.keep('client', 'w', 60_000);
    expect(await waits.find('client')).toBe('w');
    const [first] = quorum.members;
    if (first !== undefined) {
      first.isDown = true;
      first.store.waits.find = () => new Promise(() => undefined);
    }
    expect(await waits.find('client')).toBe('w');
    await waits.forget('client');
    for (const { store } of quorum.members.slice(1)) {
      expect(await store.waits.find('client')).toBeUndefined();
    }
  });
});

describe('A subscription at all members', () => {
  /** A subscription of each member that is there when the test says so. */
  const subscribing = (count: number) => {
    const quorum = quorumOfMembers(count);
    const opening = quorum.members.map(() => deferred());
    const refusals = new Set<number>();
    const closed: number[] = [];
    const standing: { active: boolean }[] = [];
    for (const [index, { store }] of quorum.members.entries()) {
      store.subscribeToReleases = async () => {
        await opening[index]?.promise;
        if (refusals.has(index)) throw unanswered();
        const made = { active: true, close: () => void closed.push(index) };
        standing[index] = made;
        return made satisfies Subscription;
      };
    }
    const asking = subscribeToReleases(quorum, 'a', () => undefined);
    const open = (...indexes: number[]) => {
      for (const index of indexes) opening[index]?.resolve();
    };
    return { asking, open, refusals, closed, standing };
  };

  it('stands with those of a majority, and for as long as these do', async () => {
    const { asking, open, standing } = subscribing(5);
    open(0, 1, 2);
    const subscription = await asking;
    expect(subscription.active).toBe(true);
    standing[0] = Object.assign(standing[0] ?? {}, { active: false });
    expect(subscription.active).toBe(false);
    open(3);
    await new Promise(setImmediate);
    expect(subscription.active).toBe(true);
  });

  it('closes all that it has, also one that a member makes later', async () => {
    const { asking, open, closed } = subscribing(3);
    open(0, 1);
    const subscription = await asking;
    subscription.close();
    expect(closed).toEqual([0, 1]);
    open(2);
    await new Promise(setImmediate);
    expect(closed).toEqual([0, 1, 2]);
  });

  it('is refused when all have answered and too few have one, which are closed', async () => {
    const { asking, open, refusals, closed } = subscribing(3);
    refusals.add(0).add(2);
    open(0, 1, 2);
    const outcomes = ['error', 'granted', 'error'].map(
      (outcome) => expect.objectContaining({ outcome }) as unknown,
    );
    await expect(asking).rejects.toMatchObject({ effect: 'refused', key: 'a', outcomes });
    expect(closed).toEqual([1]);
  });
});
