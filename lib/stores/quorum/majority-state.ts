import type { StoredHold, StoredLock } from '../lock-store.js';
import type { Answer } from './ballot.js';
import { quorumOf } from './member.js';

type Cast = readonly (Answer<StoredLock | null> | undefined)[];

/** The lock as a majority has it: held by an owner whom most members name, else by nobody. */
export function majorityState(cast: Cast): StoredLock | null {
  const states = cast.flatMap((answer) =>
    answer !== undefined && 'value' in answer && answer.value !== null ? [answer.value] : [],
  );
  const needed = quorumOf(cast.length);
  const holds = new Map<string, StoredHold[]>();
  for (const hold of states.flatMap(({ holders }) => holders)) {
    holds.set(hold.owner, [...(holds.get(hold.owner) ?? []), hold]);
  }
  for (const [owner, held] of holds) {
    if (held.length < needed) continue;
    // So long as a majority keeps it.
    const times = held.map(({ remainingTime }) => remainingTime).sort((a, b) => b - a);
    const since = held.map((hold) => hold.since ?? Infinity);
    return {
      kind: 'lock',
      holders: [
        {
          owner,
          mode: 'exclusive',
          remainingTime: times[needed - 1] ?? 0,
          since: Math.min(...since) === Infinity ? undefined : Math.min(...since),
        },
      ],
      queue: [],
      fencingToken: greatest(states.map(({ fencingToken }) => fencingToken)),
      listeners: greatest(states.map(({ listeners }) => listeners)) ?? 0,
    };
  }
  return null;
}

const greatest = (numbers: readonly (number | undefined)[]): number | undefined => {
  const known = numbers.filter((number) => number !== undefined);
  return known.length === 0 ? undefined : Math.max(...known);
};
