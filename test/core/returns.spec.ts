import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { now } from '../../lib/core/deadline.js';
import { EventStream } from '../../lib/core/event-stream.js';
import type { Labels } from '../../lib/core/labels.js';
import { Returns } from '../../lib/core/returns.js';
import { Tenure, type TenureOrigin } from '../../lib/core/tenure.js';
import { type LockEvent, LockUnavailableError } from '../../lib/index.js';
import { type ReleaseOptions, Releaser } from '../../lib/port/releaser.js';
import type { ReleaseRequest } from '../../lib/store/index.js';

const FAIR = { kind: 'fair', mode: 'exclusive', capacity: 1 } as const;

/** Notes what it is to send. */
class NotedReleaser extends Releaser {
  override release(request: ReleaseRequest, until: number, options: ReleaseOptions = {}) {
    released.push({ request, until, options });
    return super.release(request, until, options);
  }
}

let released: { request: ReleaseRequest; until: number; options: ReleaseOptions }[];
let kept: number[];
let events: LockEvent[];
let returns: Returns;
let tenures: Tenure[];
let releaser: NotedReleaser;

beforeEach(() => {
  [released, kept, events, tenures] = [[], [], [], []];
  releaser = new NotedReleaser({ release: () => Promise.resolve('released') });
  const stream = new EventStream();
  stream.subscribe((event) => events.push(event));
  returns = new Returns({
    releaser,
    labels: { keep: (time: number) => void kept.push(time) } as unknown as Labels,
    events: stream,
    initialLease: ({ leaseTime }) => leaseTime / 2,
  });
});

afterEach(async () => {
  for (const tenure of tenures) tenure.end();
  await releaser.close();
});

const granted = ({ renewed = true, ...origin }: Partial<TenureOrigin> & { renewed?: boolean } = {}) => {
  const grant = { owner: 'me:1', fencingToken: 7, grantedAt: now(), leaseTime: 30_000, ...origin };
  const tenure = new Tenure('a', { leaseTime: 30_000, renewed }, grant, () => undefined);
  tenures.push(tenure);
  return tenure;
};

/** With a holder that has promised to keep it for so long. */
const keeping = (tenure: Tenure, keepFor: number) => {
  const ignore = () => undefined;
  tenure.user = {
    keepFor,
    isInUse: true,
    onLost: ignore,
    onReleaseRequested: ignore,
    onHandedOff: ignore,
  };
  return tenure;
};

describe('what is given back', () => {
  it('is sent before the tenure ends, with what the store needs to know', async () => {
    const tenure = granted({ queue: FAIR });
    expect(await returns.giveBack(tenure)).toBe('released');
    expect(tenure.held).toBe(false);
    const request = { name: 'a', owner: 'me:1', leaseTime: 15_000, queue: FAIR };
    expect(released).toMatchObject([{ request, options: { insist: false } }]);
    expect(returns.requestOf(tenure)).toEqual(request);
    expect(released[0]?.request.fencingToken).toBeUndefined();
    expect(kept).toEqual([]);
  });

  it('tells the store the token that hand-offs have raised, and only then', async () => {
    const tenure = granted();
    tenure.handoffs = 2;
    tenure.fencingToken = 9;
    await returns.giveBack(tenure);
    expect(released[0]?.request.fencingToken).toBe(9);
  });

  it('that is kept for a time lets other processes find the label of its keeper', async () => {
    await returns.giveBack(keeping(granted(), 5_000));
    expect(kept).toEqual([5_000]);
    expect(released[0]?.request.keepFor).toBe(5_000);
  });

  it('is tried for as long as the store may have it', async () => {
    const extended = granted();
    extended.keptUntil = now() + 90_000;
    extended.doubtful = true;
    const old = granted({ grantedAt: now() - 20_000 });
    for (const tenure of [extended, old]) await returns.giveBack(tenure);
    expect(released[0]).toMatchObject({ until: extended.keptUntil, options: { insist: true } });
    // A renewal that is under way may have begun the whole lease again.
    expect(released[1]?.until).toBeGreaterThan(now() + 29_000);
  });

  it('is told of where the first attempt fails', async () => {
    const error = new LockUnavailableError('a');
    const tenure = granted();
    tenure.label = 'orders';
    await returns.giveBack(tenure);
    released[0]?.options.onFailure?.(error);
    expect(events).toEqual([{ type: 'release-failed', name: 'a', label: 'orders', owner: 'me:1', error }]);
  });
});

describe('a hold that is passed on', () => {
  it('has the answers to the release and to the entry of its next owner', async () => {
    const tenure = keeping(granted(), 100);
    const next = { granted: false, retryAfter: 5, holder: 'other:1' } as const;
    const passed = returns.passOn(tenure, (request) => {
      expect(request).toMatchObject({ owner: 'me:1', keepFor: 100 });
      return Promise.resolve({ released: 'taken', next });
    });
    expect(await passed.released).toBe('taken');
    expect(await passed.next).toBe(next);
    expect(tenure.held).toBe(false);
  });

  it.each([
    ['rejects', () => Promise.reject(new Error('broken'))],
    [
      'throws',
      () => {
        throw new Error('broken');
      },
    ],
  ])('fails for both where the store %s', async (_, handOver) => {
    const passed = returns.passOn(granted(), handOver);
    // A release never rejects: it is told of, and repeated where that can help.
    expect(await passed.released).toBeUndefined();
    expect(events).toMatchObject([{ type: 'release-failed', owner: 'me:1' }]);
    await expect(passed.next).rejects.toThrow('broken');
  });
});

describe('what was lost', () => {
  const lose = (tenure: Tenure, reason: Parameters<Tenure['lose']>[0]) => {
    tenure.lose(reason);
    released = [];
    returns.lost(tenure);
    return released.length;
  };

  it('is released where the store may still have it, and not where it is gone there', () => {
    expect(lose(granted(), 'expired')).toBe(1);
    expect(released).toMatchObject([
      { request: { name: 'a', owner: 'me:1', fencingToken: 7 }, options: { insist: false } },
    ]);
    expect(lose(granted(), 'unreachable')).toBe(1);
    expect(lose(granted(), 'max-hold')).toBe(1);
    expect([lose(granted(), 'taken'), lose(granted(), 'deleted')]).toEqual([0, 0]);
    // A fixed lease of a plain lock ends in the store by itself, and that of a queue has to wake the next waiter.
    const fixed = { renewed: false } as const;
    expect(lose(granted(fixed), 'expired')).toBe(0);
    const plain = { kind: 'lock', mode: 'exclusive', capacity: 1 } as const;
    expect(lose(granted({ ...fixed, queue: plain }), 'expired')).toBe(0);
    expect(lose(granted({ ...fixed, queue: FAIR }), 'expired')).toBe(1);
    const extended = granted(fixed);
    extended.keptUntil = now() + 60_000;
    expect(lose(extended, 'expired')).toBe(1);
    expect(released[0]?.until).toBe(extended.keptUntil);
    const doubtful = granted();
    doubtful.doubtful = true;
    expect(lose(doubtful, 'taken')).toBe(1);
    expect(released).toMatchObject([{ options: { insist: true } }]);
    expect(released[0]?.until).toBeGreaterThan(now() + 29_000);
  });

  it('is told of only where a holder had begun', () => {
    lose(granted(), 'taken');
    expect(events).toEqual([]);
    const [tenure, fixed] = [granted(), granted({ renewed: false })];
    for (const each of [tenure, fixed]) {
      each.user = {
        keepFor: undefined,
        isInUse: false,
        onLost: () => undefined,
        onReleaseRequested: () => undefined,
        onHandedOff: () => undefined,
      };
      each.label = 'orders';
    }
    tenure.forced = { by: 'console', reason: 'stuck' };
    lose(tenure, 'deleted');
    lose(fixed, 'expired');
    const event = { type: 'lost', name: 'a', label: 'orders', owner: 'me:1' };
    expect(events).toEqual([
      { ...event, reason: 'deleted', forced: { by: 'console', reason: 'stuck' } },
      { ...event, reason: 'expired', forced: undefined },
    ]);
    // Such an end has been chosen by the caller.
    expect(events.map((each) => returns.ranOut.has(each))).toEqual([false, true]);
  });
});
