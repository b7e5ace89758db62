import type { Lease } from './lock.js';

/** What a lease is in a log line or in an answer, where its insides would go round in circles. */
export const leaseJson = (lease: Lease): object => {
  const { name, owner, fencingToken, held } = lease;
  return { name, owner, fencingToken, held, remainingTime: lease.remainingTime() };
};
