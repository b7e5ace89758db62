import type { Lease } from './lock.js';

/** The form of a lease in a log line or in an answer. The lease itself contains circular references. */
export const leaseJson = (lease: Lease): object => {
  const { name, owner, fencingToken, held } = lease;
  return { name, owner, fencingToken, held, remainingTime: lease.remainingTime() };
};
