import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { answeredBy } from '../../lib/core/answered-by.js';
import { now } from '../../lib/core/deadline.js';
import { HANDOFF_TIME, mayHandOff } from '../../lib/core/hand-off.js';
import { MessageSubscription } from '../../lib/core/message-subscription.js';
import { Tenure, type TenureOrigin } from '../../lib/core/tenure.js';
import { untilAborted } from '../../lib/core/until-aborted.js';
import {
  backoff,
  busyWith,
  GRACE,
  isRefusal,
  refusedWith,
  tooLate,
  unanswered,
  WaitTimer,
} from '../../lib/core/waiting.js';
import { LockKindMismatchError, LockUnavailableError } from '../../lib/index.js';
import { deferred } from '../doubles/deferred.js';

it('the time that a hold in the way has left is told in whole ms, and not where it is unknown', () => {
  expect(busyWith('a:1', 10.2)).toEqual({ busy: true, holder: 'a:1', remainingTime: 11 });
  for (const unknown of [undefined, Infinity, 0, -1, NaN]) {
    expect(busyWith(undefined, unknown)).toEqual({ busy: true, holder: undefined, remainingTime: undefined });
  }
  const refused = { holder: 'a:1', retryAfter: 5, undecided: true };
  expect(refusedWith(refused)).toEqual({ busy: true, holder: 'a:1', remainingTime: 5, isUndecided: true });
});

it('a request is refused only where the store has certainly not carried it out', () => {
  const mismatch = new LockKindMismatchError('a', { expected: 'plain lock', found: 'fair lock' });
  const refused = new LockUnavailableError('a', { effect: 'refused' });
  expect([mismatch, refused].map(isRefusal)).toEqual([true, true]);
  expect([new LockUnavailableError('a'), new Error('broken'), tooLate('a')].map(isRefusal)).toEqual([
    false,
    false,
    false,
  ]);
});

it('an answer that comes too late is none, and the store may have carried out what was asked', () => {
  expect(tooLate('a')).toMatchObject({ code: 'LOCK_UNAVAILABLE', key: 'a', effect: 'unknown' });
});

it('the pause before the store is asked again doubles, up to a second, and is never the same for all', () => {
  for (let failures = 0; failures < 12; failures++) {
    const most = Math.min(50 * 2 ** failures, 1_000);
    const pauses = Array.from({ length: 100 }, () => backoff(failures));
    expect(Math.min(...pauses)).toBeGreaterThanOrEqual(most / 2);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(most);
    expect(new Set(pauses).size).toBeGreaterThan(1);
  }
});

it('the reason why there was no answer says for how long', () => {
  expect(unanswered('a', now() - 2_000)).toMatchObject({
    key: 'a',
    cause: expect.objectContaining({ message: expect.stringMatching(/has not answered for 2\d{3} ms/) }),
  });
});

describe('an answer', () => {
  beforeEach(() => {
    jest.useFakeTimers();
  });

  afterEach(() => {
    jest.useRealTimers();
  });

  it('that comes in time is given, and leaves no timer', async () => {
    expect(await answeredBy(now(), Promise.resolve(5), 'a')).toBe(5);
    await expect(answeredBy(now(), Promise.reject(new Error('broken')), 'a')).rejects.toThrow('broken');
    expect(jest.getTimerCount()).toBe(0);
  });

  it.each([
    [0, GRACE],
    [GRACE + 500, GRACE + 500],
  ])('that does not come within %d ms is waited for for %d ms', async (time, waited) => {
    let error: unknown;
    answeredBy(now() + time, new Promise(() => undefined), 'a').catch((reason: unknown) => (error = reason));
    await jest.advanceTimersByTimeAsync(waited - 1);
    expect(error).toBeUndefined();
    await jest.advanceTimersByTimeAsync(1);
    expect(error).toMatchObject({ code: 'LOCK_UNAVAILABLE', key: 'a' });
  });
});

it('an abort ends the wait for an answer, with its reason, and nothing else does', async () => {
  const controller = new AbortController();
  const gate = deferred();
  const answer = gate.promise.then(() => 5);
  const waiting = [untilAborted(answer, controller.signal, 'a'), untilAborted(answer, undefined, 'a')];
  expect(await untilAborted(Promise.resolve(1), controller.signal, 'a')).toBe(1);
  const broken = Promise.reject(new Error('broken'));
  await expect(untilAborted(broken, controller.signal, 'a')).rejects.toThrow('broken');
  controller.abort('enough');
  await expect(waiting[0]).rejects.toMatchObject({ code: 'LOCK_ABORTED', key: 'a', cause: 'enough' });
  gate.resolve();
  expect(await waiting[1]).toBe(5);
});

it.each<[boolean, string, Partial<TenureOrigin>, (tenure: Tenure) => void]>([
  [true, 'just granted', {}, () => undefined],
  [false, 'of a limit that is reached', {}, (tenure) => (tenure.handoffs = 3)],
  [true, 'handed off before, below the limit', {}, (tenure) => (tenure.handoffs = 2)],
  [false, 'granted too long ago', { grantedAt: now() - HANDOFF_TIME - 1 }, () => undefined],
  [
    false,
    'that others wait for in the queue, of a moment ago',
    { grantedAt: now() - 100, rivals: 'queued' },
    () => undefined,
  ],
  [true, 'that others wait for outside, just granted', { rivals: 'outside' }, () => undefined],
  [
    false,
    'that others wait for outside, a second time',
    { rivals: 'outside' },
    (tenure) => (tenure.handoffs = 1),
  ],
  [
    true,
    'that others wait for in the queue, a second time',
    { rivals: 'queued' },
    (tenure) => (tenure.handoffs = 1),
  ],
  [false, 'with less than half of its time', { leaseTime: 14_000 }, () => undefined],
  [true, 'with more than half of its time', { leaseTime: 16_000 }, () => undefined],
  [false, 'that the store may keep for longer', {}, (tenure) => (tenure.keptUntil = now() + 40_000)],
  [
    false,
    'that runs out',
    {},
    (tenure) => {
      tenure.runOut();
    },
  ],
])('may be handed off (%p): a tenure %s', (may, _, origin, change) => {
  const terms = { leaseTime: 30_000, renewed: true };
  // A moment ahead, so that a slow machine does not make it old.
  const grant = { owner: 'a:1', fencingToken: 1, leaseTime: 30_000, grantedAt: now() + 200, ...origin };
  const tenure = new Tenure('a', terms, grant, () => undefined);
  change(tenure);
  expect(mayHandOff(tenure, terms, 3)).toBe(may);
  expect(mayHandOff(tenure, undefined, 3)).toBe(false);
  expect(mayHandOff(tenure, { ...terms, renewed: false }, 3)).toBe(false);
  expect(mayHandOff(tenure, { ...terms, leaseTime: 30_001 }, 3)).toBe(false);
  expect(mayHandOff(tenure, terms, 0)).toBe(false);
  tenure.end();
});

it('a fixed lease is handed off to none', () => {
  const terms = { leaseTime: 30_000, renewed: false };
  const grant = { owner: 'a:1', fencingToken: 1, leaseTime: 30_000, grantedAt: now() };
  const tenure = new Tenure('a', terms, grant, () => undefined);
  expect(mayHandOff(tenure, { ...terms, renewed: true }, 3)).toBe(false);
  tenure.end();
});

function subscription() {
  const heard: string[] = [];
  const state = { opened: 0, subscribed: 0, closed: 0, active: true };
  let say: (message: string) => void = () => undefined;
  let open = () => Promise.resolve();
  const messages = new MessageSubscription<string>(
    async (onMessage) => {
      state.opened++;
      say = onMessage;
      await open();
      return {
        get active() {
          return state.active;
        },
        close: () => {
          state.closed++;
        },
      };
    },
    (message) => heard.push(message),
    () => state.subscribed++,
  );
  return {
    messages,
    state,
    heard,
    say: (message: string) => {
      say(message);
    },
    opening: (next: () => Promise<void>) => {
      open = next;
    },
  };
}

it('a subscription to messages is opened once for all that ask for it, and again when it has ended', async () => {
  const { messages, state, heard, say } = subscription();
  expect([messages.untried, messages.isSubscribed]).toEqual([true, false]);
  expect(await Promise.all([messages.subscribe(), messages.subscribe()])).toEqual([true, true]);
  expect(await messages.subscribe()).toBe(true);
  expect([messages.untried, messages.isSubscribed]).toEqual([false, true]);
  expect(state).toMatchObject({ opened: 1, subscribed: 1, closed: 0 });
  say('first');
  state.active = false;
  expect(messages.isSubscribed).toBe(false);
  expect(await messages.subscribe()).toBe(false);
  // The one before it is not left open.
  expect(state).toMatchObject({ opened: 2, subscribed: 1, closed: 1 });
  state.active = true;
  expect(await messages.subscribe()).toBe(true);
  messages.close();
  say('after the end');
  expect([heard, messages.isSubscribed, state.closed]).toEqual([['first'], false, 2]);
});

it('a subscription that fails is no news, and may be tried again', async () => {
  const { messages, state, opening } = subscription();
  opening(() => Promise.reject(new Error('away')));
  expect(await messages.subscribe()).toBe(false);
  expect([messages.untried, messages.isSubscribed, state.subscribed]).toEqual([false, false, 0]);
  opening(() => Promise.resolve());
  expect(await messages.subscribe()).toBe(true);
  const none = new MessageSubscription<string>(
    () => undefined,
    () => undefined,
    () => undefined,
  );
  expect([await none.subscribe(), none.untried, none.isSubscribed]).toEqual([false, false, false]);
});

it('a subscription that opens after its end is closed at once, and one that is asked for meanwhile stays', async () => {
  const { messages, state, opening } = subscription();
  const gate = deferred();
  opening(() => gate.promise);
  const opened = messages.subscribe();
  messages.close();
  gate.resolve();
  expect(await opened).toBe(false);
  expect(state).toMatchObject({ closed: 1, subscribed: 0 });
  const again = messages.subscribe();
  messages.close();
  const meanwhile = messages.subscribe();
  expect(await Promise.all([again, meanwhile])).toEqual([true, true]);
  expect(state).toMatchObject({ closed: 1, subscribed: 1 });
});

describe('the timer of a wait', () => {
  afterEach(() => {
    jest.useRealTimers();
  });

  function begin(time: number) {
    const told: string[] = [];
    const timer = new WaitTimer();
    timer.set(
      now() + time,
      () => told.push('over'),
      ({ message }) => told.push(message),
    );
    return { timer, told };
  }

  it('calls back at its moment, once, also where that is further away than a timer can be', () => {
    jest.useFakeTimers();
    const [near, far] = [begin(1_000), begin(3_000_000_000)];
    jest.advanceTimersByTime(999);
    expect(near.told).toEqual([]);
    jest.advanceTimersByTime(2);
    expect(near.told).toEqual(['over']);
    jest.advanceTimersByTime(2_999_998_000);
    expect(far.told).toEqual([]);
    jest.advanceTimersByTime(1_001);
    expect([near.told, far.told]).toEqual([['over'], ['over']]);
  });

  it('does not call back when the wait has ended before, also at the last moment', () => {
    jest.useFakeTimers();
    const { timer, told } = begin(1_000);
    timer.clear();
    expect(jest.getTimerCount()).toBe(0);
    const last = begin(1_000);
    setTimeout(() => {
      last.timer.clear();
    }, 1_000);
    jest.advanceTimersByTime(5_000);
    expect([told, last.told]).toEqual([[], []]);
  });

  it('fails where timers are faked and the clock is not, which would never come to that moment', () => {
    jest.useFakeTimers({ doNotFake: ['performance'] });
    const { told } = begin(60_000);
    jest.advanceTimersByTime(60_001);
    expect(told).toEqual([expect.stringContaining('must replace performance.now() too')]);
  });

  it.each(['ends', 'goes on'])(
    'fails with timers that are faked the old way where the wait %s',
    async (way) => {
      jest.useFakeTimers({ legacyFakeTimers: true });
      const { timer, told } = begin(60_000);
      if (way === 'ends') timer.clear();
      await Promise.resolve();
      expect(told).toHaveLength(way === 'ends' ? 0 : 1);
    },
  );
});
