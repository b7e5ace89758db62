import { now } from '../core/deadline.js';
import type { Scope } from '../core/scope.js';
import type { Busy } from '../core/waiting.js';
import { LockConfigError, LockUnavailableError } from '../lock.errors.js';
import type { AcquireOptions } from '../lock.options.js';
import { LeaseGroup } from './lease-group.js';
import type { Lock } from './lock.js';
import { type OwnLease, ScopedLock } from './scoped-lock.js';

/**
 * Several locks as one: all or none. It waits only for the member that it found busy, and holds nothing while it
 * waits, so two of them that want the same locks in different order cannot block each other.
 */
export class MultiLock extends ScopedLock {
  readonly name: string;
  readonly identity: string;
  private readonly members: readonly ScopedLock[];

  constructor(locks: readonly Lock[], defaultWaitTime: number) {
    super(defaultWaitTime);
    if (!Array.isArray(locks) || locks.length === 0) {
      throw new LockConfigError('locks', 'a multi-lock needs at least one lock', { value: locks });
    }
    const members = new Map<string, ScopedLock>();
    for (const lock of locks as readonly unknown[]) {
      if (!(lock instanceof ScopedLock)) {
        throw new LockConfigError('locks', 'a multi-lock takes locks of a LockService', { value: lock });
      }
      members.set(lock.identity, lock);
    }
    // One order for all: whoever wants the same locks meets the others at the first of them.
    this.members = [...members.values()].sort(
      (a, b) => compare(a.name, b.name) || compare(a.identity, b.identity),
    );
    this.name = this.members.map((member) => member.name).join(',');
    this.identity = this.members.map((member) => member.identity).join(',');
  }

  async enter(
    scope: Scope | undefined,
    options: AcquireOptions & { waitTime: number },
  ): Promise<OwnLease | Busy> {
    const until = now() + options.waitTime;
    let waitFor: ScopedLock | undefined;
    for (;;) {
      const order = this.members.toSorted((a, b) => Number(b === waitFor) - Number(a === waitFor));
      const leases: OwnLease[] = [];
      let refusal: { busy: Busy; by: ScopedLock } | undefined;
      try {
        for (const member of order) {
          const waitTime = member === waitFor ? Math.max(0, Math.ceil(until - now())) : 0;
          const lease = await member.enter(scope, { ...options, waitTime });
          if ('busy' in lease) {
            refusal = { busy: lease, by: member };
            break;
          }
          leases.push(lease);
        }
      } catch (error) {
        await releaseAll(leases);
        throw error;
      }
      const group = new LeaseGroup(this.name, leases);
      if (refusal === undefined && group.held) return group;
      await releaseAll(leases);
      if (now() >= until || options.waitTime === 0) {
        if (refusal !== undefined) return refusal.busy;
        // That says nothing about who holds the others.
        const cause = new Error('a lease ended before the last of the locks was taken');
        throw new LockUnavailableError(this.name, { cause });
      }
      waitFor = refusal?.by;
    }
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

async function releaseAll(leases: readonly OwnLease[]): Promise<void> {
  await Promise.all(leases.map((lease) => lease.release()));
}
