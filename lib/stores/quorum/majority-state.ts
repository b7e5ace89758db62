import type { StoredLock } from '../../store/lock-store.js';
import { type Answers, valuesOf } from './ballot.js';
import { quorumOf } from './member.js';

type States = Answers<StoredLock | null>;

/** An owner holds the lock if the members that name the owner are a majority, together with the members without an answer. */
export function majorityState(answers: States): StoredLock | null {
  const told = valuesOf(answers);
  const states = told.filter((state) => state !== null);
  const holds = states.flatMap(({ holders }) => holders);
  const byOwner = holds.map(({ owner }) => holds.filter((hold) => hold.owner === owner));
  const [held = []] = byOwner.sort((a, b) => b.length - a.length);
  const [first] = held;
  const needed = quorumOf(answers.length);
  if (first === undefined || held.length + answers.length - told.length < needed) return null;
  // The time for which a majority keeps the hold.
  const times = held.map(({ remainingTime }) => remainingTime).sort((a, b) => b - a);
  const remainingTime = times[needed - 1] ?? times.at(-1) ?? 0;
  const since = Math.min(...held.map((hold) => hold.since ?? Infinity));
  return {
    kind: 'lock',
    holders: [
      { owner: first.owner, mode: 'exclusive', remainingTime, since: since === Infinity ? undefined : since },
    ],
    queue: [],
    fencingToken: greatestToken(answers),
    listeners: Math.max(...states.map(({ listeners }) => listeners)),
  };
}

export function greatestToken(answers: States): number | undefined {
  const tokens = valuesOf(answers).flatMap((state) => state?.fencingToken ?? []);
  return tokens.length === 0 ? undefined : Math.max(...tokens);
}
