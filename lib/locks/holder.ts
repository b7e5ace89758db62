import { siteOf } from '../core/call-site.js';
import type { LockClient } from '../core/lock-client.js';
import type { Scope } from '../core/scope.js';
import { inQuotes } from '../lock.text.js';
import { Hold } from './hold.js';

/** What a caller that has waited in vain can know of a holder of its own process; undefined for any other holder. */
export function describeHolder(
  holder: string,
  { tenures }: LockClient,
  inside: Scope | undefined,
  label: string,
): string | undefined {
  for (const user of tenures.users()) {
    if (!(user instanceof Hold) || user.owner !== holder) continue;
    const site = siteOf(user.leases[0]?.site);
    const at = site === undefined ? '' : `, taken at ${site}`;
    const isOuter = inside?.near().some(({ owner }) => owner === holder) === true;
    if (isOuter) return `this caller's own outer call, which it does not re-enter${at}`;
    const own = user.tenure.label;
    const which = own === label ? 'with the same label' : 'with the label';
    return `another call of this service ${which} "${inQuotes(own)}"${at}`;
  }
  return undefined;
}
