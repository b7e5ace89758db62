import type { Scope } from '../core/scope.js';
import type { Busy } from '../core/waiting.js';
import type { AcquireCall } from './acquire-call.js';
import { untilGivenBack } from './giving-back.js';
import { GroupAttempt } from './group-attempt.js';
import type { PlainLock } from './plain-lock.js';
import type { OwnLease } from './own-lease.js';
import type { WaitLimits } from './wait-limits.js';

type Options = AcquireCall;

/** Plain locks that one command can take, because they have one location. */
export class PlainGroup {
  /** @param locks of one client, and of one location of its store */
  constructor(private readonly locks: readonly PlainLock[]) {}

  /** The location of a lock: the same for the locks of one client that one command can take. */
  static locationOf({ name, client: { id, store } }: PlainLock): string {
    return `${id} group ${store.locationOf(name)}`;
  }

  /** Whether two locks have the same location. */
  static isOneStep(one: PlainLock, other: PlainLock): boolean {
    const { client } = one;
    return (
      client === other.client && client.store.locationOf(one.name) === client.store.locationOf(other.name)
    );
  }

  get location(): string {
    const [first] = this.locks;
    return first === undefined ? '' : PlainGroup.locationOf(first);
  }

  /** Takes the locks that the scope does not hold yet, all or none, and re-enters the others. */
  async acquire(
    scope: Scope | undefined,
    options: Options,
    limits: WaitLimits,
  ): Promise<readonly OwnLease[] | Busy> {
    const fresh = this.locks.filter((lock) => lock.findHold(scope, options) === undefined);
    const taken = await take(fresh, scope, options, limits);
    if ('busy' in taken) return taken;
    const leases = [...taken];
    try {
      for (const lock of this.locks) {
        if (fresh.includes(lock)) continue;
        // The scope may have released it while the others were waited for. The others are held now, so it is not waited
        // for.
        const ask = { ...options, waitTime: 0, answerTime: limits.forStore };
        const lease = await lock.acquireLease(scope, scope, ask);
        if ('busy' in lease) {
          await giveBack(leases, options, limits);
          return { ...lease, name: lock.name };
        }
        leases.push(lease);
      }
      return leases;
    } catch (error) {
      await giveBack(leases, options, limits);
      throw error;
    }
  }
}

async function giveBack(
  leases: readonly OwnLease[],
  { signal }: Options,
  { until }: WaitLimits,
): Promise<void> {
  await untilGivenBack(Promise.all(leases.map((lease) => lease.release())), until, signal);
}

async function take(
  locks: readonly PlainLock[],
  scope: Scope | undefined,
  options: Options,
  limits: WaitLimits,
): Promise<readonly OwnLease[] | Busy> {
  const [first] = locks;
  if (first === undefined) return [];
  if (locks.length === 1) {
    const lease = await first.acquireLease(scope, scope, { ...options, ...limits.forOne });
    return 'busy' in lease ? { ...lease, name: first.name } : [lease];
  }
  const attempt = new GroupAttempt(locks, scope, options, limits);
  return await attempt.run();
}
