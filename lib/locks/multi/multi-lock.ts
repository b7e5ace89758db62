import { now, pauseFor } from '../../client/holding/deadline.js';
import type { LockClient } from '../../client/lock-client.js';
import { Scope } from '../../client/scope/scope.js';
import { reasonOf } from '../../client/validation.js';
import { backoff, type Busy } from '../../client/waiting/waiting.js';
import { LockConfigError } from '../../api/errors.js';
import { isLockUnavailableError } from '../../api/error-guards.js';
import type { ReasonOptions } from '../../api/options.js';
import { inQuotes } from '../../runtime/text.js';
import { random } from '../../runtime/runtime.js';
import { answerWithin } from '../../client/waiting/answer-within.js';
import type { AcquireCall } from '../call.js';
import { Attempt } from './attempt.js';
import { LeaseGroup } from './lease-group.js';
import type { Lock } from '../../api/lock.js';
import { isPlain, type Round, Rounds, stepsOf } from './rounds.js';
import type { OwnLease } from '../own-lease.js';
import { isScopedLock, ScopedLock } from '../scoped-lock.js';
import type { StoreLock } from '../store-lock.js';

/** Several locks as one, all or none. For its way of waiting see {@link Rounds}. */
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
      if (!isScopedLock(lock)) {
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
    // All members are checked before the first request.
    for (const member of this.members) member.assertAcquirable(call);
    const { inside, until, signal } = call;
    // The members share a scope even if no outer scope holds them, because the writer of a read-write lock may also
    // read. Plain locks of one command never re-enter each other, and need no scope.
    const isOneStep = this.steps.length === 1 && this.members.every(isPlain);
    const scope = call.into ?? (inside === undefined && isOneStep ? undefined : Scope.within(inside));
    const shared = { ...call, inside: scope, into: scope };
    const rounds = new Rounds(this.members, this.steps, this.mostHold(call));
    for (let failures = 0; ;) {
      const result = await new Attempt(this, rounds.current, shared).run();
      if (result instanceof LeaseGroup) return result;
      const { answer } = result;
      const isError = answer instanceof Error;
      failures = isError ? failures + 1 : 0;
      // The random pause separates two callers that collide at the same pace.
      const pause = isError ? backoff(failures - 1) : random() * 4;
      if (isFinal(answer) || now() >= until) {
        if (isError) throw answer;
        return answer;
      }
      rounds.next(result);
      await answerWithin(pauseFor(Math.min(pause, until - now())), this.name, { signal });
    }
  }

  /** Most ms for which members may be held before the grant of the last one. */
  private mostHold({ terms }: AcquireCall): number {
    const fixed = terms.renewed ? Infinity : terms.leaseTime;
    return Math.max(1, Math.min(fixed, this.client.options.maxHoldTime) / 2);
  }

  countHolds(scope: Scope | undefined): number {
    return Math.min(...this.members.map((member) => member.countHolds(scope)));
  }

  /** Whether any owner holds any member, so that this lock is not free. */
  async isLocked(): Promise<boolean> {
    return (await Promise.all(this.members.map((member) => member.isLocked()))).includes(true);
  }

  /** ms until the last member is free. */
  async remainingTime(): Promise<number> {
    return Math.max(...(await Promise.all(this.members.map((member) => member.remainingTime()))));
  }

  async forceRelease(options?: ReasonOptions): Promise<boolean> {
    reasonOf(options, 'forceRelease');
    return (await Promise.all(this.members.map((member) => member.forceRelease(options)))).includes(true);
  }
}

/** @throws LockConfigError for a semaphore that is given twice: its size and the number of permits are ambiguous */
function assertOnePermit(given: StoreLock, again: StoreLock): void {
  if (given.kind !== 'semaphore') return;
  const name = inQuotes(again.name);
  const sizes = `${String(given.permits)} and with ${String(again.permits)}`;
  const rule =
    given.permits === again.permits
      ? `a multi-lock takes one permit of a semaphore, and "${name}" is given twice; acquire further permits one by one`
      : `a multi-lock needs one size of a semaphore, and "${name}" is given with ${sizes} permits`;
  throw new LockConfigError('locks', rule, { key: again.name });
}

const compare = (a: string, b: string) => Number(a > b) - Number(a < b);

/**
 * Each lock once, in the same order everywhere, so that callers that want the same locks meet at the first of them. The
 * identity is a string made on demand, so it is read only for equal names.
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

/** An answer that another round cannot change, or that ends the call. */
const isFinal = (answer: Busy | Error): boolean =>
  answer instanceof Error ? !isLockUnavailableError(answer) || answer.permanent : answer.cycle !== undefined;
