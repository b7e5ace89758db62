import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { LockUnavailableError } from '../../../lib/index.js';
import type { LossMessage, QueueMessage } from '../../../lib/store/index.js';
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

describe('A member that is started again while a quorum is founded', () => {
  it.each([
    ['before it gets the claim', 0],
    ['when it gets the claim', 2],
  ])('lets the others have no vote at once: %s', async (_, index) => {
    const founding = scriptedMembers(3);
    const [claimed, again] = [founding[index]!, founding[2]!];
    const charter = claimed.charter.bind(claimed);
    let restarts = 0;
    claimed.charter = (change) => {
      if (change?.claim !== undefined && restarts++ === 0) again.restart();
      return charter(change);
    };
    const founder = storeOn(founding, LEASE);
    const { nodes } = await founder.health();
    expect(nodes.map(({ quarantine = NaN }) => quarantine > 0)).toEqual([true, true, false]);
    expect(restarts).toBe(1);
    expect(again.chartered === undefined).toBe(index === 0);
    await founder.close();
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

  it('passes for silent when a release of it was late, so that its answers are not waited for', async () => {
    await store.acquire(request);
    last.store.onRelease = late;
    expect(await store.release(request)).toBe('released');
    await turn();
    silence();
    expect(await atOnce(store.inspect('a'))).toBeNull();
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
});
