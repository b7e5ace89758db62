import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type LockStore, LockUnavailableError } from '../../../lib/index.js';
import type { ConnectionChange, LossMessage, QueueMessage } from '../../../lib/store/index.js';
import { deferred } from '../../doubles/deferred.js';
import { storeOn, type StoreOnMembers, type ScriptedMember, scriptedMembers } from './scripted-member.js';

const LEASE = 30_000;
const request = { name: 'a', owner: 'me:1', leaseTime: LEASE };

let members: ScriptedMember[];
let last: ScriptedMember;
let store: StoreOnMembers;

beforeEach(async () => {
  members = scriptedMembers(3);
  last = members[2]!;
  store = storeOn(members, LEASE);
  // All members have a vote.
  await store.health();
});

afterEach(() => store.close());

/** What a promise gives within a turn of the event loop or two; undefined where it takes longer. */
async function atOnce<T>(promise: Promise<T>): Promise<T | undefined> {
  let result: T | undefined;
  void promise.then((value) => (result = value));
  await turn();
  await turn();
  return result;
}

const late = () => {
  const cause = Object.assign(new Error('late'), { name: 'CommandTimeout' });
  return Promise.reject(new LockUnavailableError('a', { cause }));
};

describe('The members of a quorum', () => {
  it('are the location of a lock, each by its own', () => {
    for (const { store: scripted, node } of members)
      scripted.locationOf = (name?: string) => `${node}/${name ?? ''}`;
    expect(store.locationOf('a')).toBe('node-0/a node-1/a node-2/a');
  });

  it('tell each for itself that a connection is lost or back', () => {
    const changes: ConnectionChange[] = [];
    for (const { store: scripted, node } of members) {
      (scripted as LockStore).onConnectionChange = (listener) => {
        listener({ node, connected: false });
      };
    }
    store.onConnectionChange((change) => changes.push(change));
    expect(changes).toEqual(members.map(({ node }) => ({ node, connected: false })));
  });

  it('are closed when the releases under way have been answered', async () => {
    const closed: string[] = [];
    for (const { store: scripted, node } of members)
      scripted.close = async () => void closed.push(await Promise.resolve(node));
    const gate = deferred();
    await store.acquire(request);
    last.store.onRelease = late;
    await store.release(request);
    last.store.onRelease = () => gate.promise;
    // The repeated release is sent at once to a member that is connected again, so that it is under way.
    last.store.calls.release = 0;
    while (last.store.calls.release === 0) await new Promise((resolve) => setTimeout(resolve, 10));
    const closing = store.close();
    await turn();
    expect(closed).toEqual([]);
    gate.resolve();
    await closing;
    expect(closed).toEqual(members.map(({ node }) => node));
  });
});

describe('A member of a quorum', () => {
  const silence = () => {
    last.store.inspect = () => new Promise(() => undefined);
  };

  it('passes for silent when an acquisition of it was late, so that its answers are not waited for', async () => {
    last.store.beforeAcquire = late;
    expect(await store.acquire(request)).toMatchObject({ granted: true });
    await turn();
    silence();
    expect(await atOnce(store.inspect('a'))).toMatchObject({ holders: [{ owner: 'me:1' }] });
  });

  it('passes for present again when it answers an acquisition, so that its answers are waited for', async () => {
    last.store.waits.find = late;
    await atOnce(store.waits.find('me'));
    expect(await store.acquire(request)).toMatchObject({ granted: true });
    await turn();
    silence();
    expect(await atOnce(store.inspect('a'))).toBeUndefined();
  });

  it('passes for silent when a release of it was late, so that its answers are not waited for', async () => {
    await store.acquire(request);
    last.store.onRelease = late;
    expect(await store.release(request)).toBe('released');
    await turn();
    silence();
    expect(await atOnce(store.inspect('a'))).toBeNull();
  });

  it('passes for present again when it answers a release, so that its answers are waited for', async () => {
    await store.acquire(request);
    last.store.waits.find = late;
    await atOnce(store.waits.find('me'));
    expect(await store.release(request)).toBe('released');
    await turn();
    silence();
    expect(await atOnce(store.inspect('a'))).toBeUndefined();
  });

  it('passes for silent when a renewal of it was late, and for present when it answers one', async () => {
    await store.acquire(request);
    last.store.onRenew = late;
    expect(await store.renew([request])[0]).toBe('held');
    await turn();
    const inspect = last.store.inspect.bind(last.store);
    silence();
    expect(await atOnce(store.inspect('a'))).not.toBeUndefined();
    last.store.inspect = inspect;
    last.store.onRenew = () => undefined;
    expect(await store.renew([request])[0]).toBe('held');
    await turn();
    silence();
    expect(await atOnce(store.inspect('a'))).toBeUndefined();
  });
});

describe('The message of a release', () => {
  const wakes: string[] = [];
  const wake = async () => {
    wakes.length = 0;
    const subscription = await store.subscribeToReleases('a', () => wakes.push('a'));
    for (const member of members) {
      await member.store.acquire({ ...request, owner: 'former:1' });
      await member.store.release({ name: 'a', owner: 'former:1' });
    }
    await turn();
    return subscription;
  };
  it('wakes nothing after the subscription was closed', async () => {
    await store.health();
    const subscription = await wake();
    subscription.close();
    for (const member of members) {
      await member.store.acquire(request);
      await member.store.release(request);
    }
    await turn();
    expect(wakes).toEqual(['a']);
  });
});

describe('A client of a quorum', () => {
  const listening = async () => {
    const messages: LossMessage[] = [];
    const tell: ((message: QueueMessage) => void)[] = [];
    for (const { store: scripted } of members) {
      scripted.subscribeToQueue = (_, onMessage) => {
        tell.push(onMessage);
        return Promise.resolve({ active: true, close: () => undefined });
      };
    }
    const subscription = await store.subscribeToLosses('me', (message) => messages.push(message));
    return { messages, tell, subscription };
  };

  it('is told by each member that messages were missed, and nothing that is about queues', async () => {
    const { messages, tell } = await listening();
    const missed = { type: 'missed' } as const;
    tell[1]?.(missed);
    tell[2]?.({
      type: 'granted',
      owner: 'me:1',
      fencingToken: 1,
      grantedAt: 0,
      leaseTime: 1,
      rivals: 'none',
    });
    expect(messages).toEqual([missed]);
  });

  it('is told nothing after it has closed its subscription, also not what was to be told a moment later', async () => {
    const { messages, tell, subscription } = await listening();
    const lost = { type: 'lost', owner: 'me:1', forced: undefined } as QueueMessage;
    tell[0]?.(lost);
    subscription.close();
    tell[1]?.(lost);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(messages).toEqual([]);
  });

  it.each<[string, string | undefined, () => Promise<unknown>]>([
    ['releases', 'a', () => store.subscribeToReleases('a', () => undefined)],
    ['losses', undefined, () => store.subscribeToLosses('me', () => undefined)],
  ])('has no subscription to %s where too few members make one', async (_, key, subscribe) => {
    const error = new LockUnavailableError('a', { cause: new Error('silent') });
    for (const { store: scripted } of members.slice(1)) {
      scripted.subscribeToReleases = () => Promise.reject(error);
      scripted.subscribeToQueue = () => Promise.reject(error);
    }
    const outcomes = ['granted', 'error', 'error'].map(
      (outcome) => expect.objectContaining({ outcome }) as unknown,
    );
    await expect(subscribe()).rejects.toMatchObject({ effect: 'refused', key, outcomes });
  });
});
