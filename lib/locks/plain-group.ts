import { now } from '../core/deadline.js';
import type { Scope } from '../core/scope.js';
import type { Busy } from '../core/waiting.js';
import type { AcquireOptions } from '../lock.options.js';
import type { PlainLock } from './plain-lock.js';
import type { OwnLease } from './scoped-lock.js';

/** Plain locks that one command can take, because they live in one place. */
export class PlainGroup {
  /** @param locks of one client, and of one place of its store */
  constructor(private readonly locks: readonly PlainLock[]) {}

  /** Where it lives: the locks of one client that one command can take. */
  static placeOf({ name, client: { id, store } }: PlainLock): string {
    return `${id} group ${store.placeOf(name)}`;
  }

  get place(): string {
    const [first] = this.locks;
    return first === undefined ? '' : PlainGroup.placeOf(first);
  }

  /** Takes those that the scope does not hold yet, all or none, and re-enters the others. */
  async enter(
    scope: Scope | undefined,
    options: AcquireOptions & { waitTime: number },
  ): Promise<readonly OwnLease[] | Busy> {
    const fresh = this.locks.filter((lock) => lock.findHold(scope) === undefined);
    const taken = await take(fresh, scope, options);
    if ('busy' in taken) return taken;
    const leases = [...taken];
    try {
      for (const lock of this.locks) {
        if (fresh.includes(lock)) continue;
        // The scope may have given it up while the others were waited for. They are held now, so nobody waits for it.
        const lease = await lock.enter(scope, scope, { ...options, waitTime: 0 });
        if ('busy' in lease) {
          await giveBack(leases);
          return { ...lease, name: lock.name };
        }
        leases.push(lease);
      }
      return leases;
    } catch (error) {
      await giveBack(leases);
      throw error;
    }
  }
}

async function giveBack(leases: readonly OwnLease[]): Promise<void> {
  await Promise.all(leases.map((lease) => lease.release()));
}

async function take(
  locks: readonly PlainLock[],
  scope: Scope | undefined,
  options: AcquireOptions & { waitTime: number },
): Promise<readonly OwnLease[] | Busy> {
  const [first] = locks;
  if (first === undefined) return [];
  if (locks.length === 1) {
    const lease = await first.enter(scope, scope, options);
    return 'busy' in lease ? { ...lease, name: first.name } : [lease];
  }
  const askedAt = now();
  const names = locks.map((lock) => lock.name);
  const tenures = await first.client.obtainAll(names, first.request(options, scope));
  if ('busy' in tenures) return tenures;
  return tenures.flatMap((tenure, index) => locks[index]?.begin(tenure, scope, askedAt) ?? []);
}
