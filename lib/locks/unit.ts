import type { Scope } from '../core/scope.js';
import type { Busy } from '../core/waiting.js';
import type { AcquireCall } from './acquire-call.js';
import type { WaitLimits } from './wait-limits.js';
import { PlainGroup } from './plain-group.js';
import { PlainLock } from './plain-lock.js';
import type { OwnLease } from './own-lease.js';
import type { ScopedLock } from './scoped-lock.js';

/** What is taken in one step: plain locks that have one location, or one lock of any kind by itself. */
export interface Unit {
  /** The same for the two sides of a read-write lock, and different for one name on two services. */
  readonly location: string;
  acquire(
    scope: Scope | undefined,
    options: AcquireCall,
    limits: WaitLimits,
  ): Promise<readonly OwnLease[] | Busy>;
}

/**
 * The units, each of which one step can take.
 * @param inOrder only neighbours are taken together, so that the units keep the members' order; else as many as possible
 */
export function unitsOf(members: readonly ScopedLock[], { inOrder = false } = {}): readonly Unit[] {
  const groups = new Map<string, PlainLock[]>();
  const units: Unit[] = [];
  let last: PlainLock[] | undefined;
  for (const member of members) {
    if (!(member instanceof PlainLock)) {
      last = undefined;
      units.push(alone(member));
      continue;
    }
    // Mostly all locks have one location, for which a text need not be made each time.
    if (last?.[0] === undefined || !PlainGroup.isOneStep(last[0], member)) {
      const place = PlainGroup.locationOf(member);
      last = inOrder ? undefined : groups.get(place);
      if (last === undefined) {
        last = [];
        groups.set(place, last);
        units.push(new PlainGroup(last));
      }
    }
    last.push(member);
  }
  return units;
}

/** One lock of a kind that is taken by itself. */
const alone = (member: ScopedLock): Unit => ({
  location: member.location,
  acquire: async (scope, options, limits) => {
    const lease = await member.acquireLease(scope, scope, { ...options, ...limits.forOne });
    return 'busy' in lease ? { ...lease, name: member.name } : [lease];
  },
});
