import type { LockService } from '../module/lock-service.js';
import type { ListOptions, LockSummary } from '../api/lock-summary.js';
import type { Given } from './given.js';
import { usageFailure } from './command-failure.js';

/** Locks by name, up to a limit. */
export interface FoundLocks {
  readonly locks: readonly LockSummary[];
  /** There are more than the limit. */
  readonly more: boolean;
}

const MOST_OF_PAGE = 1_000;

export interface Search {
  readonly prefix: string;
  readonly state: ListOptions['state'];
  readonly limit: number;
}

/** @throws Failure for options that exclude each other */
export function searchOf(given: Given): Search {
  const held = given.flag('held');
  if (held && given.flag('waited')) throw usageFailure('only one of --held and --waited may be given');
  const state = held ? 'held' : given.flag('waited') ? 'waited' : undefined;
  return { prefix: given.names[0] ?? '', state, limit: given.count('limit', 1_000) };
}

/** Reads pages until the limit is reached. Which of more locks are found is left to the store. */
export async function findLocks(service: LockService, { prefix, state, limit }: Search): Promise<FoundLocks> {
  const found = new Map<string, LockSummary>();
  let cursor: string | null | undefined;
  do {
    // One more than is wanted tells whether there are more: a cursor may lead to none.
    const wanted = Math.min(limit + 1 - found.size, MOST_OF_PAGE);
    const page = await service.list({ prefix, state, limit: wanted, cursor: cursor ?? undefined });
    for (const lock of page.locks) found.set(lock.name, lock);
    ({ cursor } = page);
  } while (cursor !== null && found.size <= limit);
  const locks = [...found.values()]
    .slice(0, limit)
    .sort((a, b) => Number(a.name > b.name) - Number(a.name < b.name));
  return { locks, more: found.size > limit };
}
