import type { StoredHold, StoredLock } from '../../store/lock-store.js';
import type { NodeAnswer } from './ballot.js';
import { quorumOf } from './member.js';

type Cast = readonly (NodeAnswer<StoredLock | null> | undefined)[];

/**
 * The state of the lock by majority. An owner holds it if the members that name this owner, together with the members
 * without an answer, are a majority. Otherwise the lock is free.
 */
export function majorityState(cast: Cast): StoredLock | null {
  const answers = cast.flatMap((answer) => (answer !== undefined && 'value' in answer ? [answer.value] : []));
  const states = answers.filter((state) => state !== null);
  const needed = quorumOf(cast.length);
  const holds = new Map<string, StoredHold[]>();
  for (const hold of states.flatMap(({ holders }) => holders)) {
    holds.set(hold.owner, [...(holds.get(hold.owner) ?? []), hold]);
  }
  const [most] = [...holds].sort(([, a], [, b]) => b.length - a.length);
  if (most === undefined) return null;
  const [owner, held] = most;
  const silent = cast.length - answers.length;
  if (held.length + silent < needed) return null;
  // The time for which a majority keeps the hold.
  const times = held.map(({ remainingTime }) => remainingTime).sort((a, b) => b - a);
  const since = Math.min(...held.map((hold) => hold.since ?? Infinity));
  return {
    kind: 'lock',
    holders: [
      {
        owner,
        mode: 'exclusive',
        remainingTime: times[needed - 1] ?? times.at(-1) ?? 0,
        since: since === Infinity ? undefined : since,
      },
    ],
    queue: [],
    fencingToken: greatestToken(cast),
    listeners: greatest(states.map(({ listeners }) => listeners)) ?? 0,
  };
}

/** The greatest token that any member reports for the lock. */
export function greatestToken(cast: Cast): number | undefined {
  return greatest(
    cast.map((answer) =>
      answer !== undefined && 'value' in answer ? answer.value?.fencingToken : undefined,
    ),
  );
}

const greatest = (numbers: readonly (number | undefined)[]): number | undefined => {
  const known = numbers.filter((number) => number !== undefined);
  return known.length === 0 ? undefined : Math.max(...known);
};
