import { now } from '../../client/holding/deadline.js';
import type { LockClient } from '../../client/lock-client.js';
import { Scope } from '../../client/scope/scope.js';
import { reasonOf } from '../../client/validation.js';
import type { Busy } from '../../client/waiting/waiting.js';
import { isLockUnavailableError, LockConfigError } from '../../api/errors.js';
import type { ReasonOptions } from '../../api/options.js';
import { inQuotes } from '../../runtime/text.js';
import { random, sleep } from '../../runtime/runtime.js';
import { answeredBy } from '../../client/waiting/answered-by.js';
import { Attempt } from '../attempt.js';
import type { AcquireCall } from '../call.js';
import { untilGivenBack } from '../giving-back.js';
import { endedMeanwhile, LeaseGroup } from './lease-group.js';
import type { Lock } from '../../api/lock.js';
import { isPlain, type Round, Rounds, stepsOf } from './rounds.js';
import type { OwnLease } from '../own-lease.js';
import { isScopedLock, ScopedLock } from '../scoped-lock.js';
import type { Semaphore } from '../semaphore.js';
import type { StoreLock } from '../store-lock.js';

/** Several locks as one: all or none. {@link Rounds} describes how it waits for them. */
export class MultiLock extends ScopedLock {
  readonly members: readonly StoreLock[];
  private readonly steps: Round['steps'];
  private madeName: string | undefined;

  constructor(locks: readonly Lock[], client: LockClient) {
    super(client);
    if (!Array.isArray(locks) || locks.length === 0) {
      throw new LockConfigError('locks', 'a multi-lock needs at least one lock', { value: locks });
    }
    const given: StoreLock[] = [];
    for (const lock of locks as readonly unknown[]) {
      if (!isMadeByPackage(lock)) {
        throw new LockConfigError('locks', 'a multi-lock takes locks of a LockService', { value: lock });
      }
      given.push(...lock.members);
    }
    this.members = inOrder(given);
    this.steps = stepsOf(this.members);
  }

  get name(): string {
    return (this.madeName ??= this.members.map((member) => member.name).join(','));
  }

  get identity(): string {
    return this.members.map((member) => member.identity).join(',');
  }

  readonly kind = 'multi';

  async acquireLease(call: AcquireCall): Promise<OwnLease | Busy> {
    // All members are checked before the first one is asked for.
    for (const member of this.members) member.assertAcquirable(call);
    const { inside, until, signal } = call;
    // The members share a scope, also if no scope is to hold them: a writer may read as well. Plain locks that one command
    // can take need none: none of them enters another one again.
    const isOneStep = this.steps.length === 1 && this.members.every(isPlain);
    const scope = call.into ?? (inside === undefined && isOneStep ? undefined : Scope.within(inside));
    const shared = { ...call, inside: scope, into: scope };
    const rounds = new Rounds(this.members, this.steps, this.mostHold(call));
    let round = rounds.current;
    for (;;) {
      const attempt = new Attempt(round, shared);
      const refusal = await attempt.run();
      const group = new LeaseGroup(this.name, this.groupOf(call), attempt.leases, this.client);
      if (refusal === undefined && (await isWhole(group, round, call))) return group;
      await untilGivenBack(group.release(), until, signal);
      const answer = refusal?.answer ?? endedMeanwhile(this.name);
      if (isFinal(answer) || now() >= until) {
        if (answer instanceof Error) throw answer;
        return answer;
      }
      if (refusal !== undefined) round = rounds.next(refusal);
      // Two callers that have met like this would meet again, if they went on at the same pace.
      await sleep(random() * Math.min(4, until - now()));
    }
  }

  /** For how long some members may be held before the last one is granted, ms. */
  private mostHold({ leaseTime, renew }: AcquireCall): number {
    const fixed = leaseTime === undefined || renew === true ? Infinity : leaseTime;
    return Math.max(1, Math.min(fixed, this.client.options.maxHoldTime) / 2);
  }

  countHolds(scope: Scope | undefined): number {
    return Math.min(...this.members.map((member) => member.countHolds(scope)));
  }

  /** Whether any member is locked by any owner, so that this lock could not be taken. */
  async isLocked(): Promise<boolean> {
    return (await Promise.all(this.members.map((member) => member.isLocked()))).includes(true);
  }

  /** Until the last member is free. */
  async remainingTime(): Promise<number> {
    return Math.max(...(await Promise.all(this.members.map((member) => member.remainingTime()))));
  }

  async forceRelease(options?: ReasonOptions): Promise<boolean> {
    reasonOf(options, 'forceRelease');
    return (await Promise.all(this.members.map((member) => member.forceRelease(options)))).includes(true);
  }
}

const isMadeByPackage = (lock: unknown): lock is ScopedLock & { readonly members: readonly StoreLock[] } =>
  isScopedLock(lock);

// By its kind: a lock may be of another copy of this package.
const isSemaphore = (lock: StoreLock | undefined): lock is Semaphore => lock?.kind === 'semaphore';

/** @throws LockConfigError for a semaphore that is given twice: it is unclear which size counts, and how many permits */
function assertOnePermit(given: StoreLock | undefined, again: StoreLock): void {
  if (!isSemaphore(given) || !isSemaphore(again)) return;
  const { name } = again;
  const sizes = `${String(given.permits)} and with ${String(again.permits)}`;
  const rule =
    given.permits === again.permits
      ? `a multi-lock takes one permit of a semaphore, and "${inQuotes(name)}" is given twice; acquire further permits one by one`
      : `a multi-lock needs one size of a semaphore, and "${inQuotes(name)}" is given with ${sizes} permits`;
  throw new LockConfigError('locks', rule, { key: name });
}

const compare = (a: string, b: string) => Number(a > b) - Number(a < b);

/**
 * Each lock once, and in one order for all: callers that want the same locks meet at the first of them. The identity is a
 * text that has to be made, so it is looked at only where two names are the same.
 */
function inOrder(given: StoreLock[]): readonly StoreLock[] {
  given.sort((a, b) => compare(a.name, b.name) || compare(a.identity, b.identity));
  const members: StoreLock[] = [];
  for (const lock of given) {
    const last = members.at(-1);
    if (last?.name === lock.name && last.identity === lock.identity) assertOnePermit(last, lock);
    else members.push(lock);
  }
  return members;
}

/** An answer that a second try cannot change, or that is to end the call. */
const isFinal = (answer: Busy | Error): boolean =>
  answer instanceof Error ? !isLockUnavailableError(answer) || answer.permanent : answer.cycle !== undefined;

/**
 * Whether all members are held for as long as was asked for. In a round in order, the first members have been held for a
 * while already. So a fixed lease begins when the last member is granted.
 */
async function isWhole(
  group: LeaseGroup,
  { hold }: Round,
  { leaseTime, renew, signal, until }: AcquireCall,
): Promise<boolean> {
  if (!group.held) return false;
  if (hold === 0 || leaseTime === undefined || renew === true) return true;
  try {
    await answeredBy(until, group.extend(leaseTime, { signal }), group.name);
  } catch {
    return false;
  }
  return group.held;
}
