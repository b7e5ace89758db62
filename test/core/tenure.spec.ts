import { afterEach, expect, it } from '@jest/globals';
import { deadlineOf, now } from '../../lib/core/deadline.js';
import { Tenure, type TenureOrigin } from '../../lib/core/tenure.js';
import { Tenures } from '../../lib/core/tenures.js';
import type { TenureKeeper } from '../../lib/core/waiting.js';
import type { AskedHolder } from '../../lib/lock.asker.js';
import type { LockLostError } from '../../lib/index.js';
import { until } from '../scenarios/until.js';

let tenures: Tenure[] = [];
/** The tenures whose end has been told. */
let ended: Tenure[] = [];

afterEach(() => {
  for (const tenure of tenures) tenure.end();
  tenures = [];
  ended = [];
});

/** @param age ms since its grant */
function granted(
  {
    age = 0,
    leaseTime = 30_000,
    renewed = true,
  }: { age?: number; leaseTime?: number; renewed?: boolean } = {},
  origin: Partial<TenureOrigin> = {},
  name = 'a',
): Tenure {
  const grant = { owner: 'me', fencingToken: 1, grantedAt: now() - age, leaseTime, ...origin };
  const tenure = new Tenure(name, { leaseTime, renewed }, grant, (over) => ended.push(over));
  tenures.push(tenure);
  return tenure;
}

/** What a holder is told. */
function usedBy(tenure: Tenure) {
  const told: { losses: LockLostError[]; asked: AskedHolder[] } = { losses: [], asked: [] };
  tenure.user = {
    keepFor: undefined,
    isInUse: false,
    onLost: (loss) => told.losses.push(loss),
    onReleaseRequested: (asker) => told.asked.push(asker),
    onHandedOff: () => undefined,
  };
  return told;
}

const ASKER: AskedHolder = { request: 'r', holders: 1, by: 'console', reason: undefined };

it('a tenure that was granted for less is overdue by the lease that was confirmed since', () => {
  const tenure = granted({ leaseTime: 30_000 }, { leaseTime: 1_000 });
  // A sixth of it is left, and no renewal has failed yet.
  tenure.prolong(now() - 25_000, 30_000);
  expect(tenure.overdue).toBe(false);
  tenure.failures = 1;
  expect(tenure.overdue).toBe(true);
  // Half of it is left.
  tenure.prolong(now() - 15_000, 30_000);
  tenure.failures = 1;
  expect(tenure.overdue).toBe(false);
});

it('is overdue also while the answer to a renewal does not come, but not where it is fixed or over', () => {
  const [renewed, fixed, over] = [
    granted({ age: 25_000 }),
    granted({ age: 25_000, renewed: false }),
    granted({ age: 25_000 }),
  ];
  for (const tenure of [renewed, fixed, over]) tenure.renewing = true;
  over.end();
  expect([renewed, fixed, over].map(({ overdue }) => overdue)).toEqual([true, false, false]);
});

it('is lost when a shortened lease is over, though it is never looked at', async () => {
  const tenure = granted({ leaseTime: 60_000 });
  expect(tenure.shorten(now() + 30)).toBe(true);
  await until(() => ended.includes(tenure));
  expect(tenure.loss?.reason).toBe('expired');
});

it('is lost when its lease is over, though it is never looked at', async () => {
  const tenure = granted({ leaseTime: 40, renewed: false });
  tenure.guard();
  await until(() => ended.includes(tenure));
  expect(tenure.ranOut).toBe(true);
});

it('is shortened only to an earlier end, and the store may keep it as long as it has granted', () => {
  const tenure = granted({ leaseTime: 60_000 });
  expect(tenure.shorten(tenure.deadline)).toBe(false);
  expect(tenure.shorten(now() + 90_000)).toBe(false);
  expect(tenure.keptAtMostUntil).toBe(tenure.deadline);
  const moment = now();
  expect(tenure.shorten(moment + 20_000)).toBe(true);
  expect(tenure.deadline).toBe(moment + 20_000);
  expect(tenure.granted).toBeLessThanOrEqual(20_000);
  expect(tenure.keptAtMostUntil).toBeGreaterThanOrEqual(moment + 60_000);
  expect(tenure.remainingTime).toBeLessThanOrEqual(20_000);
  // To a moment that is over: it is over, too.
  expect(tenure.shorten(now() - 1)).toBe(false);
  expect(tenure.held).toBe(false);
  expect(tenure.shorten(now() - 2)).toBe(false);
});

it('keeps through a shorter prolongation what the store has granted for longer', () => {
  const tenure = granted({ leaseTime: 30_000 });
  tenure.prolong(now(), 90_000);
  const { deadline } = tenure;
  tenure.prolong(now(), 30_000);
  expect(tenure.deadline).toBe(deadline);
  tenure.shorten(now() + 1_000);
  expect(tenure.keptAtMostUntil).toBeGreaterThan(now() + 89_000);
});

it('takes a renewal that succeeds for the end of the failures before it', () => {
  const tenure = granted({ age: 25_000 });
  tenure.failures = 3;
  expect(tenure.overdue).toBe(true);
  tenure.prolong(now(), 30_000);
  expect(tenure.failures).toBe(0);
  // A renewal that fails later is the first one again.
  const over = granted();
  over.end();
  const { deadline } = over;
  over.prolong(now() + 1_000, 60_000);
  expect(over.deadline).toBe(deadline);
});

it('is told to have ended once, however it ends', () => {
  const [released, lost] = [granted(), granted()];
  released.end();
  released.end();
  released.lose('taken');
  expect(released.loss).toBeUndefined();
  lost.lose('deleted');
  lost.lose('taken');
  lost.end();
  expect(lost.loss?.reason).toBe('deleted');
  expect(ended).toEqual([released, lost]);
  expect([released.held, lost.held]).toEqual([false, false]);
  expect([released.remainingTime, lost.remainingTime]).toEqual([0, 0]);
});

it('tells its holder of its loss, with the one that has taken it by force and the cause', () => {
  const forced = { by: 'console', reason: 'stuck' };
  const cause = new Error('another kind');
  const losses = (['taken', 'deleted', 'expired'] as const).map((reason) => {
    const tenure = granted();
    const told = usedBy(tenure);
    tenure.forced = forced;
    tenure.lose(reason, cause);
    return told.losses;
  });
  expect(losses).toMatchObject([
    [{ reason: 'taken', owner: 'me', forced, cause }],
    [{ reason: 'deleted', owner: 'me', forced, cause }],
    [{ reason: 'expired', owner: 'me', forced: undefined, cause }],
  ]);
});

it('says by which rule it has ended', () => {
  const reason = (tenure: Tenure) => {
    expect(tenure.held).toBe(false);
    return tenure.loss?.reason;
  };
  const old = { age: 40_000 };
  expect(reason(granted(old))).toBe('expired');
  const fixed = granted({ ...old, renewed: false });
  expect([reason(fixed), fixed.ranOut]).toEqual(['expired', true]);
  const unanswered = granted(old);
  unanswered.failures = 1;
  expect(reason(unanswered)).toBe('unreachable');
  const asking = granted(old);
  asking.renewing = true;
  expect([reason(asking), asking.ranOut]).toEqual(['unreachable', false]);
  const bounded = granted({ age: 1_000 });
  bounded.limit(now() - 1);
  expect([reason(bounded), bounded.ranOut]).toEqual(['max-hold', false]);
  const told = granted({ age: 1_000 });
  told.renewing = true;
  told.limit(now() - 1);
  expect(reason(told)).toBe('max-hold');
  const deleted = granted({ renewed: false });
  deleted.lose('deleted');
  expect(deleted.ranOut).toBe(false);
});

it('ends at maxHoldTime or at its deadline, whichever comes first', () => {
  const tenure = granted({ leaseTime: 30_000 });
  expect(tenure.timeToHold).toBe(Infinity);
  tenure.limit(now() + 10_000);
  expect(tenure.remainingTime).toBeLessThanOrEqual(10_000);
  expect(tenure.timeToHold).toBeLessThanOrEqual(10_000);
  tenure.limit(now() + 90_000);
  expect(tenure.remainingTime).toBeLessThan(30_000);
  expect(tenure.timeToHold).toBeGreaterThan(80_000);
  const fixed = granted({ renewed: false });
  fixed.limit(now() + 10_000);
  expect(fixed.timeToHold).toBe(Infinity);
});

it('ends at maxHoldTime though it is never looked at', async () => {
  const tenure = granted();
  tenure.limit(now() + 30);
  await until(() => ended.includes(tenure));
  expect(tenure.loss?.reason).toBe('max-hold');
});

it('that runs out ends where it would have, and no renewal changes that', () => {
  const tenure = granted({ age: 1_000 });
  tenure.runOut();
  const { remainingTime } = tenure;
  tenure.prolong(now(), 90_000);
  expect(tenure.remainingTime).toBeLessThanOrEqual(remainingTime);
  expect(tenure.isRunningOut).toBe(true);
  const over = granted();
  over.end();
  over.runOut();
  expect(over.isRunningOut).toBe(false);
});

it('that runs out is lost as expired, also with renewals under way', () => {
  const tenure = granted({ age: 29_000 });
  tenure.runOut();
  tenure.renewing = true;
  tenure.limit(now() - 1);
  expect(tenure.held).toBe(false);
  expect(tenure.loss?.reason).toBe('expired');
});

it('keeps a request for its release until its holder begins, and none once it is over', () => {
  const tenure = granted();
  tenure.ask(ASKER);
  expect(tenure.asker).toBe(ASKER);
  const told = usedBy(tenure);
  tenure.ask({ ...ASKER, request: 's' });
  expect(told.asked).toMatchObject([{ request: 's' }]);
  expect(tenure.asker).toBe(ASKER);
  tenure.end();
  tenure.ask(ASKER);
  expect(told.asked).toHaveLength(1);
});

it('knows how it was granted, and by default without an entry and without rivals', () => {
  const queue = { kind: 'lock', mode: 'exclusive', capacity: 1 } as const;
  expect(granted({}, {})).toMatchObject({
    queue: undefined,
    stood: false,
    handedOver: false,
    rivals: 'none',
    fencingToken: 1,
    holdUntil: Infinity,
    doubtful: false,
  });
  const origin = { queue, stood: true, handedOver: true, rivals: 'outside', fencingToken: 7 } as const;
  const tenure = granted({ leaseTime: 30_000 }, { ...origin, leaseTime: 10_000 });
  expect(tenure).toMatchObject(origin);
  // What the store has granted counts, and not what was asked for.
  expect(tenure.deadline).toBe(deadlineOf(tenure.grantedAt, 10_000));
  expect(tenure.granted).toBe(10_000);
});

it('the tenures of a process are known by name, mode and token, the oldest first', () => {
  const all = new Tenures();
  const keeper = {} as TenureKeeper;
  const read = { kind: 'read-write', mode: 'shared', capacity: 1 } as const;
  expect([all.size, all.oldest, all.lastToken('a')]).toEqual([0, undefined, undefined]);
  const [first, second, other] = [
    granted({}, { fencingToken: 7 }),
    granted({}, { fencingToken: 3, queue: read }),
    granted({}, { fencingToken: 5 }, 'b'),
  ];
  for (const tenure of [first, second, other]) all.add(tenure, keeper);
  expect([all.size, all.oldest, all.keeperOf(other)]).toEqual([3, first, keeper]);
  expect(all.of('a')).toEqual([first, second]);
  expect([all.lastToken('a'), all.lastToken('b'), all.lastToken('c')]).toEqual([7, 5, undefined]);
  expect([...all.lastTokens(new Set(['a', 'b', 'c']))]).toEqual([
    ['a', 7],
    ['b', 5],
  ]);
  expect([...all.lastTokens(new Set(['b']))]).toEqual([['b', 5]]);
  expect(all.hasOtherMode('a', { ...read, mode: 'exclusive' })).toBe(true);
  expect(all.hasOtherMode('a', read)).toBe(false);
  expect(all.hasOtherMode('b', { ...read, mode: 'exclusive' })).toBe(false);
  expect(all.hasOtherMode('a', { kind: 'lock', mode: 'exclusive', capacity: 1 })).toBe(false);
  usedBy(second);
  expect([...all.users()]).toEqual([second.user]);
  all.remove(first);
  expect([all.size, all.oldest, all.keeperOf(first)]).toEqual([2, second, undefined]);
});
