import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Acquisition, type Callers, type LockTerms } from '../../lib/core/acquisition.js';
import { now, timerAt } from '../../lib/core/deadline.js';
import { type LeaseTerms, Tenure, type TenureOrigin } from '../../lib/core/tenure.js';
import { type Busy, POLL } from '../../lib/core/waiting.js';
import { LockUnavailableError } from '../../lib/index.js';
import { CLAIM, QUEUE_ENTRY_LIFE } from '../../lib/port/queue-messages.js';
import type { ReleaseOptions } from '../../lib/port/releaser.js';
import type { AcquireReply, AcquireRequest, QueueTerms, ReleaseRequest } from '../../lib/store/index.js';

const PLAIN: QueueTerms = { kind: 'lock', mode: 'exclusive', capacity: 1 };
const FAIR: QueueTerms = { kind: 'fair', mode: 'exclusive', capacity: 1 };
const BUSY: AcquireReply = { granted: false, retryAfter: 60_000, holder: 'other:1' };
const GRANT: AcquireReply = { granted: true, fencingToken: 7 };

let asked: { at: number; request: AcquireRequest }[];
let replies: (() => Promise<AcquireReply>)[];
let released: { request: ReleaseRequest; until: number; options: ReleaseOptions | undefined }[];
let grants: { origin: TenureOrigin; isDoubtful: boolean }[];
let refusals: Busy[];
let failures: { error: Error; isFinal: boolean }[];
let told: string[];
let tenures: Tenure[];
let begun: number;
/** How many requests the callers have been told of. */
let requests: number;
let messages: { untried: boolean; isSubscribed: boolean; subscribe: () => Promise<boolean> };
let callers: { -readonly [K in 'next' | 'wait' | 'isSubscribed']: Callers[K] } & Omit<
  Callers,
  'next' | 'wait' | 'isSubscribed'
>;

beforeEach(() => {
  jest.useFakeTimers();
  // Waiters differ by a random part; here it is none.
  jest.spyOn(Math, 'random').mockReturnValue(0);
  begun = now();
  requests = 0;
  [asked, replies, released, grants, refusals, failures, told, tenures] = [[], [], [], [], [], [], [], []];
  messages = { untried: false, isSubscribed: true, subscribe: () => Promise.resolve(true) };
  callers = {
    next: { leaseTime: 30_000, renewed: true },
    wait: true,
    isSubscribed: false,
    subscribe: () => {
      told.push('subscribe');
      return Promise.resolve(false);
    },
    asked: () => requests++,
    leftToOthers: () => told.push('left to others'),
    unsubscribe: () => told.push('unsubscribe'),
    refused: (_, busy) => refusals.push(busy),
    failed: (_, error, isFinal) => failures.push({ error, isFinal }),
    granted: (origin, isDoubtful) => {
      grants.push({ origin, isDoubtful });
      const tenure = new Tenure('a', { leaseTime: origin.leaseTime, renewed: true }, origin, () => undefined);
      tenures.push(tenure);
      return tenure;
    },
  };
});

afterEach(() => {
  for (const tenure of tenures) tenure.end();
  jest.restoreAllMocks();
  jest.useRealTimers();
});

function acquisition(queue: QueueTerms | undefined, terms: Partial<LockTerms> = {}) {
  let owners = 0;
  return new Acquisition(
    { name: 'a', queue, ownWriteHold: undefined, ...terms },
    callers,
    {
      releaser: {
        release: (request, until, options) => {
          released.push({ request, until, options });
        },
      },
      nextOwner: () => `me:${String(++owners)}`,
      initialLease: ({ leaseTime }: LeaseTerms) => leaseTime,
      giveBack: () => Promise.resolve(undefined),
      store: {
        acquire: (request) => {
          asked.push({ at: Math.round(now() - begun), request });
          return (replies.shift() ?? (() => Promise.resolve(BUSY)))();
        },
      },
      leaseTime: 30_000,
      queueMessages: messages,
      setTimer: timerAt,
      acquisitionBegun: () => undefined,
      acquisitionOver: () => undefined,
      acquisitionWaits: () => told.push('waits'),
    },
    () => told.push('over'),
  );
}

const begin = (queue: QueueTerms | undefined, terms: Partial<LockTerms> = {}) => {
  const made = acquisition(queue, terms);
  void made.start();
  return made;
};
const pass = (time = 0) => jest.advanceTimersByTimeAsync(time);
const times = () => asked.map(({ at }) => at);
const reply = (answer: AcquireReply) => () => Promise.resolve(answer);
const fail = (error: Error) => () => Promise.reject(error);
const lost = () => fail(new LockUnavailableError('a'));
const message = (part: object = {}) =>
  ({
    type: 'granted',
    owner: 'me:1',
    fencingToken: 9,
    grantedAt: now(),
    leaseTime: 30_000,
    rivals: 'queued',
    ...part,
  }) as const;

describe('an acquisition', () => {
  it('is granted with what the store has answered, from the time of its request', async () => {
    replies = [() => new Promise((resolve) => setTimeout(resolve, 100, GRANT))];
    const made = begin(PLAIN);
    await pass(50);
    expect([made.silentSince, made.isGranted]).toEqual([begun, false]);
    await pass(50);
    const origin = { owner: 'me:1', grantedAt: begun, leaseTime: 30_000, fencingToken: 7, queue: PLAIN };
    expect(grants).toEqual([
      { origin: { ...origin, rivals: undefined, stood: true, handedOver: false }, isDoubtful: false },
    ]);
    expect([made.isGranted, told, released]).toEqual([true, ['over'], []]);
    await pass(60_000);
    expect([asked.length, requests]).toEqual([1, 1]);
    // It is over, so that nothing gives it up.
    made.leave();
    expect([told, released]).toEqual([['over'], []]);
  });

  it('tells of the owner in the way, and for how long', async () => {
    replies = [reply({ ...BUSY, retryAfter: 5_000 })];
    const made = begin(PLAIN);
    expect(made.silentSince).toBe(begun);
    await pass(1_000);
    expect(refusals).toMatchObject([{ holder: 'other:1', remainingTime: 5_000 }]);
    expect(made.obstacle).toMatchObject({ busy: true, holder: 'other:1', remainingTime: 4_000 });
    expect([made.silentSince, told[0]]).toEqual([undefined, 'waits']);
    made.leave();
  });

  it('keeps its entry, with the arrival that the store has named', async () => {
    replies = [
      reply({ ...BUSY, retryAfter: 100, arrival: 5 }),
      reply({ ...BUSY, retryAfter: 100 }),
      reply(GRANT),
    ];
    begin(FAIR, { ownWriteHold: 'me:0' });
    await pass(300);
    const queue = { ...FAIR, ownWriteHold: 'me:0' };
    expect(asked.map(({ request }) => request)).toEqual(
      [undefined, 5, 5].map((arrival) => ({
        ...{ name: 'a', owner: 'me:1', leaseTime: 30_000 },
        queue: { ...queue, entry: { arrival } },
      })),
    );
    expect(times()).toEqual([0, 101, 202]);
  });

  it('asks again by itself when a claim could have been lost, and then once per lease', async () => {
    replies = [reply({ ...BUSY, retryAfter: Infinity }), reply({ ...BUSY, retryAfter: Infinity })];
    const made = begin(FAIR);
    await pass(31_100);
    const first = CLAIM + 0.01 * CLAIM + 2;
    expect(times().slice(0, 3)).toEqual([0, first, first + 30_001]);
    made.leave();
    // The head of a plain lock is told nothing of a hold that lasts as long as its own lease.
    callers.next = { leaseTime: 5_000, renewed: true };
    begun = now();
    asked = [];
    const plain = begin(PLAIN);
    await pass(6_100);
    expect(times().slice(0, 3)).toEqual([0, first, first + 5_001]);
    plain.leave();
  });

  it('without messages takes no entry, and polls', async () => {
    messages.isSubscribed = false;
    messages.subscribe = () => Promise.resolve(false);
    const made = begin(PLAIN);
    await pass(2 * POLL + 10);
    expect(times()).toEqual([0, POLL, 2 * POLL]);
    expect(asked[0]?.request.queue?.entry).toBeUndefined();
    made.leave();
    // The store knows nothing of it.
    expect(released).toEqual([]);
  });

  it('asks again as soon as messages come, and takes an entry', async () => {
    messages.isSubscribed = false;
    messages.subscribe = () => {
      messages.isSubscribed = true;
      return Promise.resolve(true);
    };
    const made = begin(PLAIN);
    await pass();
    expect(asked.map(({ request }) => request.queue?.entry)).toEqual([undefined, { arrival: undefined }]);
    made.leave();
  });

  it('whose order is promised opens its subscription first, for a moment', async () => {
    messages.untried = true;
    messages.subscribe = () => new Promise(() => undefined);
    const fair = begin(FAIR);
    await pass(124);
    expect(asked).toEqual([]);
    // What has to be opened takes its time, too.
    expect(fair.silentSince).toBe(begun);
    await pass(2);
    expect(asked).toHaveLength(1);
    fair.leave();
    asked = [];
    begun = now();
    messages.subscribe = () => new Promise((resolve) => setTimeout(resolve, 10, true));
    const opened = begin(FAIR);
    await pass(20);
    expect(times()).toEqual([10]);
    opened.leave();
    asked = [];
    const plain = begin(PLAIN);
    await pass();
    expect(asked).toHaveLength(1);
    plain.leave();
    callers.wait = false;
    replies = [reply(GRANT)];
    begin(FAIR);
    await pass();
    expect(grants).toHaveLength(1);
  });

  it('waits before its first request where other processes are to come first', async () => {
    const made = acquisition(PLAIN);
    void made.start(undefined, 100);
    await pass(99);
    expect(asked).toEqual([]);
    await pass(1);
    expect(times()).toEqual([100]);
    made.leave();
  });

  it('takes the answer to a request that went with a release', async () => {
    const made = acquisition(PLAIN);
    void made.start(Promise.resolve(GRANT));
    await pass();
    expect([asked, grants.length, made.isGranted]).toEqual([[], 1, true]);
  });
});

describe('a message', () => {
  it('that grants a whole lease ends the wait', async () => {
    const made = begin(PLAIN);
    await pass(500);
    const grantedAt = now();
    made.onMessage(message());
    expect(grants).toMatchObject([
      { origin: { fencingToken: 9, grantedAt, rivals: 'queued', stood: true, handedOver: true } },
    ]);
    await pass(60_000);
    expect([asked.length, told.filter((each) => each === 'over')]).toEqual([1, ['over']]);
  });

  it('that grants a claim is confirmed by a request, at once', async () => {
    replies = [reply(BUSY), reply(GRANT)];
    const made = begin(PLAIN);
    await pass(500);
    made.onMessage(message({ leaseTime: CLAIM }));
    expect(grants).toEqual([]);
    await pass();
    expect(times()).toEqual([0, 500]);
    expect(grants).toMatchObject([
      { origin: { fencingToken: 7, grantedAt: begun + 500, rivals: 'queued', handedOver: true } },
    ]);
  });

  it('that overtakes an answer which is then lost leaves the hold, whose request may arrive later', async () => {
    let settle: (error: Error) => void = () => undefined;
    replies = [() => new Promise((_, reject) => (settle = reject))];
    const made = begin(PLAIN);
    await pass();
    made.onMessage(message());
    expect(tenures[0]?.doubtful).toBe(false);
    settle(new LockUnavailableError('a'));
    await pass(5_000);
    expect([tenures[0]?.doubtful, released, failures, asked.length]).toEqual([true, [], [], 1]);
  });

  it('that overtakes an answer is the grant, and the answer is none', async () => {
    let settle: (answer: AcquireReply) => void = () => undefined;
    const sent = new Promise<AcquireReply>((resolve) => (settle = resolve));
    const made = acquisition(PLAIN);
    void made.start(sent);
    made.onMessage(message());
    settle(GRANT);
    await pass(5_000);
    expect([grants.length, released, asked]).toEqual([1, [], []]);
  });

  it('that comes late is a reason to ask, and no grant', async () => {
    replies = [reply(BUSY), reply(GRANT)];
    const made = begin(PLAIN);
    await pass(500);
    made.onMessage(message({ grantedAt: now() - CLAIM }));
    await pass();
    expect(times()).toEqual([0, 500]);
    expect(grants).toMatchObject([{ origin: { fencingToken: 7, rivals: undefined, handedOver: false } }]);
  });

  it('that the store does not confirm any longer is forgotten', async () => {
    replies = [reply(BUSY), reply(BUSY), reply(GRANT)];
    const made = begin(PLAIN);
    await pass(500);
    made.onMessage(message({ leaseTime: CLAIM }));
    await pass();
    made.lookAgain();
    await pass();
    expect(grants).toMatchObject([{ origin: { rivals: undefined, handedOver: false } }]);
  });

  it('that names a moment moves the next request there', async () => {
    const made = begin(FAIR);
    await pass(100);
    made.onMessage({ type: 'next', owner: 'me:1', within: 50 });
    await pass(50);
    expect(times()).toEqual([0]);
    await pass(1);
    expect([times(), told.includes('left to others')]).toEqual([[0, 151], false]);
    made.onMessage({ type: 'next', owner: 'me:1', within: 50, listen: true });
    await pass(50);
    expect([times(), told.includes('left to others')]).toEqual([[0, 151, 201], true]);
    made.onMessage({ type: 'missed', owner: 'me:1' });
    await pass();
    expect(times()).toEqual([0, 151, 201, 201]);
    made.leave();
  });
});

describe('an acquisition that leaves', () => {
  it('gives up what it may have, for as long as the store may keep it', async () => {
    replies = [reply({ ...BUSY, retryAfter: 90_000 })];
    const made = begin(PLAIN);
    await pass(1);
    const moment = now();
    made.leave();
    made.leave();
    const request = { name: 'a', owner: 'me:1', leaseTime: 30_000, queue: PLAIN };
    expect(released).toEqual([
      {
        request,
        until: moment + 30_000,
        options: { insist: false, entryUntil: begun + 90_000 + 30_000 + QUEUE_ENTRY_LIFE },
      },
    ]);
    expect([made.releaseRequest, told.at(-1)]).toEqual([request, 'over']);
    await pass(90_000);
    expect(asked).toHaveLength(1);
  });

  it('before it has asked gives up nothing', () => {
    const made = acquisition(PLAIN);
    made.leave();
    expect([released, told]).toEqual([[], ['over']]);
  });

  it('while its request is under way takes it back again where the answer is lost', async () => {
    let settle: (error: Error) => void = () => undefined;
    replies = [() => new Promise((_, reject) => (settle = reject))];
    messages.isSubscribed = false;
    const made = begin(PLAIN);
    await pass();
    made.leave();
    expect(released).toHaveLength(1);
    settle(new LockUnavailableError('a'));
    await pass();
    expect(released).toMatchObject([{ options: { insist: false } }, { options: { insist: true } }]);
    expect([grants, failures]).toEqual([[], []]);
  });

  it('while its request is under way has given it up, whatever the answer is', async () => {
    let settle: (answer: AcquireReply) => void = () => undefined;
    replies = [() => new Promise((resolve) => (settle = resolve))];
    const made = begin(PLAIN);
    await pass();
    made.leave();
    settle(GRANT);
    await pass();
    expect([released.length, grants, asked.length]).toEqual([1, [], 1]);
  });

  it('while a request that went with a release is under way takes it back after the answer', async () => {
    let settle: (answer: AcquireReply) => void = () => undefined;
    const sent = new Promise<AcquireReply>((resolve) => (settle = resolve));
    const made = acquisition(PLAIN);
    void made.start(sent);
    made.leave();
    expect(released).toHaveLength(1);
    settle(GRANT);
    await pass();
    expect([released.length, grants]).toEqual([2, []]);
  });

  it('has left when its last caller has gone before the grant', async () => {
    replies = [
      () => {
        callers.next = undefined;
        return Promise.resolve(GRANT);
      },
    ];
    begin(PLAIN);
    await pass();
    expect([grants, released.length, told]).toEqual([[], 1, ['over']]);
  });
});

describe('a grant for another lease than the next caller wants', () => {
  it('is asked for anew by the same owner, which may shorten the hold', async () => {
    replies = [
      () => {
        callers.next = { leaseTime: 5_000, renewed: true };
        return Promise.resolve(GRANT);
      },
      reply({ ...GRANT, fencingToken: 8 }),
    ];
    begin(PLAIN);
    await pass();
    expect(asked.map(({ request }) => [request.leaseTime, request.shortens, request.owner])).toEqual([
      [30_000, undefined, 'me:1'],
      [5_000, 7, 'me:1'],
    ]);
    expect(grants).toMatchObject([{ origin: { leaseTime: 5_000, fencingToken: 8 } }]);
    // Where the store has lost the first token, the hold is as long as it was.
    expect(tenures[0]?.keptUntil).toBe(begun + 30_000);
    expect(released).toEqual([]);
  });

  it('is given back where there are no queues', async () => {
    replies = [
      () => {
        callers.next = { leaseTime: 5_000, renewed: true };
        return Promise.resolve(GRANT);
      },
      reply(GRANT),
    ];
    begin(undefined);
    await pass();
    expect(released).toMatchObject([{ request: { owner: 'me:1' }, until: begun + 30_000 }]);
    expect(grants).toMatchObject([{ origin: { owner: 'me:2', leaseTime: 5_000 } }]);
  });
});

describe('an acquisition on a store without queues', () => {
  it('asks with a new owner each time, and is woken by its subscription', async () => {
    callers.subscribe = () => {
      callers.isSubscribed = true;
      return Promise.resolve(true);
    };
    replies = [reply(BUSY), reply(BUSY), reply(GRANT)];
    const made = begin(undefined);
    await pass();
    // The release may have come between the request and the subscription.
    expect(asked.map(({ request }) => request)).toEqual(
      ['me:1', 'me:2'].map((owner) => ({ name: 'a', owner, leaseTime: 30_000 })),
    );
    await pass(29_999);
    expect(asked).toHaveLength(2);
    await pass(2);
    expect([times()[2], made.firstOwner, made.owner]).toEqual([30_001, 'me:1', 'me:3']);
    expect(grants).toMatchObject([{ origin: { owner: 'me:3', stood: false } }]);
  });

  it('polls while it has no subscription', async () => {
    const made = begin(undefined);
    await pass(1_100);
    expect(times()).toEqual([0, POLL + 1, 2 * POLL + 2]);
    made.leave();
    expect(released).toEqual([]);
  });

  it('takes each request without an answer back, and asks again soon', async () => {
    replies = [lost(), reply(GRANT)];
    begin(undefined);
    await pass();
    expect(released).toMatchObject([{ request: { owner: 'me:1' }, options: { insist: true } }]);
    expect(failures).toMatchObject([{ isFinal: false }]);
    await pass(25);
    expect(times()).toEqual([0, 25]);
    expect(grants).toMatchObject([{ origin: { owner: 'me:2' }, isDoubtful: false }]);
  });

  it('gives back a grant that is answered after its end', async () => {
    callers.next = { leaseTime: 50, renewed: true };
    replies = [() => new Promise((resolve) => setTimeout(resolve, 50, GRANT)), reply(GRANT)];
    begin(undefined);
    await pass(50);
    expect(released).toMatchObject([{ request: { owner: 'me:1' } }]);
    expect([grants, failures[0]?.isFinal]).toEqual([[], false]);
    await pass(25);
    expect(grants).toMatchObject([{ origin: { owner: 'me:2' } }]);
  });
});

describe('a request that fails', () => {
  it('is sent again for the same owner where there is a queue, after pauses that grow', async () => {
    replies = [lost(), lost(), lost(), reply(GRANT)];
    const made = begin(PLAIN);
    await pass(30);
    expect(made.obstacle).toBeInstanceOf(LockUnavailableError);
    expect(made.silentSince).toBeUndefined();
    await pass(1_000);
    expect(times()).toEqual([0, 25, 75, 175]);
    expect([released, failures.length]).toEqual([[], 3]);
    expect(grants).toMatchObject([{ origin: { owner: 'me:1' }, isDoubtful: true }]);
  });

  it('counts its failures anew after an answer', async () => {
    replies = [lost(), lost(), reply({ ...BUSY, retryAfter: 100 }), lost(), reply(GRANT)];
    const made = begin(PLAIN);
    await pass(100);
    expect(made.obstacle).toMatchObject({ busy: true, holder: 'other:1' });
    await pass(1_000);
    expect(times()).toEqual([0, 25, 75, 176, 201]);
  });

  it('is certain not to have been carried out where the store has refused it', async () => {
    replies = [fail(new LockUnavailableError('a', { effect: 'refused' })), reply(GRANT)];
    begin(PLAIN);
    await pass(25);
    expect(grants).toMatchObject([{ isDoubtful: false }]);
  });

  it.each([
    ['permanent', new LockUnavailableError('a', { permanent: true, effect: 'refused' }), true],
    ['of the program', new TypeError('broken'), true],
    ['temporary', new LockUnavailableError('a', { effect: 'refused' }), false],
  ])('tells its callers whether a second try can help: %s', async (_, error, isFinal) => {
    replies = [fail(error)];
    const made = begin(PLAIN);
    callers.failed = (askedAt, failure, final) => {
      failures.push({ error: failure, isFinal: final });
      expect(askedAt).toBe(begun);
      made.leave();
    };
    await pass();
    expect(failures).toEqual([{ error, isFinal }]);
  });
});

describe('an answer that comes after the end of its lease', () => {
  const late = () => new Promise<AcquireReply>((resolve) => setTimeout(resolve, 50, GRANT));

  beforeEach(() => {
    callers.next = { leaseTime: 50, renewed: true };
    // No entry is taken, and the store may have one for a hold all the same.
    messages.isSubscribed = false;
  });

  it('is asked for again at once by the same owner where there is a queue', async () => {
    replies = [late, reply(GRANT)];
    begin(PLAIN);
    await pass(50);
    expect(times()).toEqual([0, 50]);
    expect(failures).toMatchObject([{ isFinal: false, error: { code: 'LOCK_UNAVAILABLE' } }]);
    expect(grants).toMatchObject([{ origin: { owner: 'me:1', grantedAt: begun + 50, stood: true } }]);
    expect(released).toEqual([]);
  });

  it('is given up by an acquisition that leaves then', async () => {
    replies = [late];
    const made = begin(PLAIN);
    callers.failed = () => {
      made.leave();
    };
    await pass(50);
    expect(released).toMatchObject([{ request: { owner: 'me:1' } }]);
  });
});

describe('a lock that others have outside of the queue', () => {
  it('needs the subscription to releases, until it is not so any more', async () => {
    replies = [
      reply({ ...BUSY, listen: true }),
      reply({ ...BUSY, listen: true, holder: undefined }),
      reply(BUSY),
    ];
    const made = begin(PLAIN);
    await pass(POLL);
    expect(told.filter((each) => each !== 'waits')).toEqual(['subscribe', 'left to others']);
    expect(times()).toEqual([0, POLL]);
    callers.isSubscribed = true;
    await pass(POLL);
    expect(told.at(-1)).toBe('unsubscribe');
    made.leave();
  });
});
