import { jest } from '@jest/globals';
import type { RestartQuarantine } from '../../../lib/stores/quorum/restart-quarantine.js';

/** The lease time of a quorum whose members vote or do not, ms. */
export const LEASE = 30_000;
/** ms: far beyond any lease of these tests. */
export const OLD = 10_000_000;

export const pass = (ms: number) => jest.advanceTimersByTimeAsync(ms);

export const settle = async <T>(promise: Promise<T>): Promise<T> => {
  await pass(2_000);
  return await promise;
};

/** Which members' votes count. Needs fake timers. */
export const voters = (quarantine: RestartQuarantine, members: readonly unknown[]) =>
  settle(Promise.all(members.map((_, index) => quarantine.mayVote(index))));

export const all = (members: readonly unknown[], vote: boolean) => members.map(() => vote);
