import { setTimeout as sleep } from 'node:timers/promises';
import { now } from '../core/deadline.js';
import { Scope } from '../core/scope.js';
import type { Busy } from '../core/waiting.js';
import { isLockUnavailableError, LockConfigError, LockUnavailableError } from '../lock.errors.js';
import type { AcquireOptions } from '../lock.options.js';
import { LeaseGroup } from './lease-group.js';
import type { Lock } from './lock.js';
import { PlainGroup } from './plain-group.js';
import { PlainLock } from './plain-lock.js';
import { isScopedLock, type OwnLease, ScopedLock } from './scoped-lock.js';

/** What is taken in one step: plain locks that live together, or any other lock for itself. */
interface Unit {
  readonly name: string;
  enter(
    scope: Scope | undefined,
    options: AcquireOptions & { waitTime: number },
  ): Promise<readonly OwnLease[] | Busy>;
}

/**
 * Several locks as one: all or none. While it waits it holds nothing, so two of them that want the same locks in
 * different order cannot block each other.
 */
export class MultiLock extends ScopedLock {
  readonly name: string;
  readonly identity: string;
  private readonly members: readonly ScopedLock[];
  private readonly units: readonly Unit[];

  constructor(locks: readonly Lock[], defaultWaitTime: number) {
    super(defaultWaitTime);
    if (!Array.isArray(locks) || locks.length === 0) {
      throw new LockConfigError('locks', 'a multi-lock needs at least one lock', { value: locks });
    }
    const members = new Map<string, ScopedLock>();
    for (const lock of locks as readonly unknown[]) {
      if (!isScopedLock(lock)) {
        throw new LockConfigError('locks', 'a multi-lock takes locks of a LockService', { value: lock });
      }
      for (const member of lock instanceof MultiLock ? lock.members : [lock])
        members.set(member.identity, member);
    }
    // One order for all: whoever wants the same locks meets the others at the first of them.
    this.members = [...members.values()].sort(
      (a, b) => compare(a.name, b.name) || compare(a.identity, b.identity),
    );
    this.units = unitsOf(this.members);
    this.name = this.members.map((member) => member.name).join(',');
    this.identity = this.members.map((member) => member.identity).join(',');
  }

  async enter(
    scope: Scope | undefined,
    options: AcquireOptions & { waitTime: number },
  ): Promise<OwnLease | Busy> {
    const until = now() + options.waitTime;
    // The members are one owner's, also where the caller has no scope: whoever writes may read as well.
    const shared = scope ?? new Scope(undefined);
    let order = this.units;
    for (;;) {
      const { leases, refusal } = await enterInOrder(order, shared, options, until);
      const group = new LeaseGroup(this.name, leases);
      if (refusal === undefined && group.held) return group;
      await group.release();
      const answer = refusal?.answer ?? this.endedMeanwhile();
      if (isFinal(answer) || now() >= until) {
        if (answer instanceof Error) throw answer;
        return answer;
      }
      // Whoever was in the way is waited for, and then comes first. The two sides of a read-write lock stay together,
      // and in their order: a reader cannot become the writer.
      const isFirst = ({ name }: Unit) => Number(name === refusal?.by.name);
      order = this.units.toSorted((a, b) => isFirst(b) - isFirst(a));
      // Two that have met like this would meet again, if they went on at the same pace.
      await sleep(Math.random() * Math.min(4, until - now()));
    }
  }

  private endedMeanwhile(): LockUnavailableError {
    // That says nothing about who holds the others.
    const cause = new Error('a lease ended before the last of the locks was taken');
    return new LockUnavailableError(this.name, { cause });
  }

  countHolds(scope: Scope | undefined): number {
    return Math.min(...this.members.map((member) => member.countHolds(scope)));
  }

  /** Whether any member is locked by anyone, so that this one could not be taken. */
  async isLocked(): Promise<boolean> {
    return (await Promise.all(this.members.map((member) => member.isLocked()))).includes(true);
  }

  /** Until the last member is free. */
  async remainingTime(): Promise<number> {
    return Math.max(...(await Promise.all(this.members.map((member) => member.remainingTime()))));
  }

  async forceRelease(): Promise<boolean> {
    return (await Promise.all(this.members.map((member) => member.forceRelease()))).includes(true);
  }
}

const compare = (a: string, b: string) => Number(a > b) - Number(a < b);

/** An error that a second try cannot turn. */
const isFinal = (answer: Busy | Error): boolean =>
  answer instanceof Error && (!isLockUnavailableError(answer) || answer.permanent);

/** Enters one after the other, as far as it goes. Only the first is waited for: then nothing is held yet. */
async function enterInOrder(
  order: readonly Unit[],
  scope: Scope,
  options: AcquireOptions & { waitTime: number },
  until: number,
): Promise<{ leases: readonly OwnLease[]; refusal?: { by: Unit; answer: Busy | Error } }> {
  const leases: OwnLease[] = [];
  for (const unit of order) {
    // Never more than was given: the sum of two long times is rounded.
    const left = Math.min(options.waitTime, Math.max(0, Math.ceil(until - now())));
    const waitTime = unit === order[0] ? left : 0;
    try {
      const entered = await unit.enter(scope, { ...options, waitTime });
      if ('busy' in entered) return { leases, refusal: { by: unit, answer: entered } };
      leases.push(...entered);
    } catch (error) {
      return { leases, refusal: { by: unit, answer: error as Error } };
    }
  }
  return { leases };
}

/** What one step can take, in the members' order. */
function unitsOf(members: readonly ScopedLock[]): readonly Unit[] {
  const groups = new Map<string, PlainLock[]>();
  const units: Unit[] = [];
  for (const member of members) {
    if (member instanceof PlainLock) {
      const { id, store } = member.client;
      const place = `${id} ${store.placeOf(member.name)}`;
      const group = groups.get(place);
      if (group !== undefined) {
        group.push(member);
        continue;
      }
      const locks = [member];
      groups.set(place, locks);
      units.push(new PlainGroup(locks));
    } else {
      units.push({
        name: member.name,
        enter: async (scope, options) => {
          const lease = await member.enter(scope, options);
          return 'busy' in lease ? lease : [lease];
        },
      });
    }
  }
  return units;
}
