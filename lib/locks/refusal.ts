import { siteOf } from '../client/scope/call-site.js';
import { now } from '../client/holding/deadline.js';
import type { LockClient } from '../client/lock-client.js';
import type { Busy } from '../client/waiting/waiting.js';
import { LockTimeoutError } from '../api/errors.js';
import { isKept } from '../api/lock-state.js';
import { inQuotes } from '../runtime/text.js';
import type { AcquireCall } from './call.js';
import { Hold } from './hold.js';
import type { ScopedLock } from './scoped-lock.js';

/** Wait, ms, after which an error names the holder's label even if that costs a question to the store. */
const LONG_WAIT = 1_000;

/** Shown in place of a label. It shows a caller that waits for itself, by two services of one server, the cause. */
const SIBLING = 'another LockService of this process, whose locks are not re-entered';

const reasonOf = ({ isFull, cycle }: Busy): LockTimeoutError['reason'] => {
  if (cycle !== undefined) return 'deadlock';
  return isFull === true ? 'queue-full' : 'timeout';
};

/** Publishes that a caller did not get the lock in time. */
export function tellOfTimeout(
  lock: ScopedLock,
  busy: Busy,
  call: AcquireCall,
  holderLabel: string | undefined,
  waited = now() - call.askedAt,
): void {
  const { name = lock.name, holder } = busy;
  const label = lock.groupOf(call);
  const reason = reasonOf(busy);
  lock.client.events.next({ type: 'timed-out', name, label, waited, reason, holder, holderLabel });
}

/** @returns the holder's label, if it is known without a question to the store */
export function knownHolder(lock: ScopedLock, { name = lock.name, holder }: Busy): string | undefined {
  return holder === undefined ? undefined : lock.clientFor(name)?.labels.knownOf(holder);
}

/** Publishes that a caller of `acquire` did not get the lock. @throws LockTimeoutError */
export async function refuse(lock: ScopedLock, busy: Busy, call: AcquireCall): Promise<never> {
  const { name = lock.name, holder, remainingTime, cycle } = busy;
  const waited = Math.round(now() - call.askedAt);
  const client = lock.clientFor(name);
  let label = knownHolder(lock, busy);
  let shown: string | undefined;
  let known: string | undefined;
  if (client !== undefined && holder !== undefined) {
    if (client.labels.isSibling(holder) && !isKept(holder)) shown = SIBLING;
    // After so long a wait, one more question makes no difference.
    else if (waited >= LONG_WAIT) label = await client.labels.find(holder);
    known = describeHolder(name, holder, client, lock.groupOf(call), call);
  }
  tellOfTimeout(lock, busy, call, label, waited);
  throw new LockTimeoutError(
    name,
    waited,
    holder,
    reasonOf(busy),
    remainingTime,
    shown ?? label,
    cycle,
    known,
  );
}

/** The description of a holder in this process; undefined for other holders. */
function describeHolder(
  name: string,
  holder: string,
  { tenures }: LockClient,
  label: string,
  { inside }: AcquireCall,
): string | undefined {
  for (const { user, owner } of tenures.of(name)) {
    if (!(user instanceof Hold) || owner !== holder) continue;
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
