import type { Lease } from './lock.js';

/** The form of a lease in a log line or in an answer. The lease itself contains circular references. */
export const leaseJson = (lease: Lease): object => {
  const { name, label, owner, fencingToken, held, acquiredAt } = lease;
  const times = { acquiredAt, heldFor: Math.round(lease.heldFor()), remainingTime: lease.remainingTime() };
  return { name, label, owner, fencingToken, held, ...times };
};
