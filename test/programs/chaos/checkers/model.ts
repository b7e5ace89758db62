import type { Attempt, Kind, Mode } from '../history.js';
import type { Operation } from './search.js';

/** A lock as it should be: who holds it, how often each has entered, and the last fencing token. */
export interface LockState {
  readonly holders: ReadonlyMap<
    number,
    { readonly mode: Mode; readonly count: number; readonly until: number }
  >;
  readonly token: number;
}

export const FREE: LockState = { holders: new Map(), token: 0 };

export function keyOf({ holders, token }: LockState): string {
  const entered = Array.from(holders, ([id, { count }]) => `${String(id)}:${String(count)}`);
  return `${String(token)} ${entered.length > 1 ? entered.sort().join() : (entered[0] ?? '')}`;
}

export interface LockOperation extends Operation<LockState> {
  readonly attempt: Attempt;
  readonly what: string;
}

type Holder = typeof FREE.holders extends ReadonlyMap<number, infer H> ? H : never;

const admits = (holders: ReadonlyMap<number, Holder>, kind: Kind, mode: Mode, capacity: number): boolean =>
  mode === 'exclusive'
    ? holders.size === 0
    : holders.size < capacity &&
      (kind === 'semaphore' || [...holders.values()].every((holder) => holder.mode === 'shared'));

/** Puts out those in the way whose end has come, and no more: whether the others have left is not known. */
function makeRoom(
  holders: ReadonlyMap<number, Holder>,
  kind: Kind,
  mode: Mode,
  capacity: number,
  at: number,
): ReadonlyMap<number, Holder> {
  if (admits(holders, kind, mode, capacity)) return holders;
  const left = new Map(holders);
  for (const [id, { until }] of [...holders].sort(([, a], [, b]) => a.until - b.until)) {
    if (admits(left, kind, mode, capacity) || until > at) break;
    // A reader can only be kept out by the writer.
    if (kind !== 'read-write' || mode === 'exclusive' || left.get(id)?.mode === 'exclusive') left.delete(id);
  }
  return left;
}

/**
 * An acquisition that was granted: the lock admits it, and its token is greater than all before.
 * @param until from when on the hold may have ended without a word
 */
export function grant(
  id: number,
  attempt: Attempt & { granted: number; token: number },
  until: number,
): LockOperation {
  const { kind, mode, capacity, token } = attempt;
  return {
    attempt,
    what: 'got it',
    invoked: attempt.invoked,
    returned: attempt.granted,
    rank: token,
    apply: (state, at) => {
      if (token <= state.token) return undefined;
      const holders = makeRoom(state.holders, kind, mode, capacity, at);
      if (!admits(holders, kind, mode, capacity)) return undefined;
      return {
        holders: new Map(holders).set(id, { mode, count: 1, until }),
        token: Math.max(token, state.token),
      };
    },
  };
}

/** Entering again what the scope holds. */
export const reenter = (outer: number, attempt: Attempt & { granted: number }): LockOperation => ({
  attempt,
  what: 'entered again',
  invoked: attempt.invoked,
  returned: attempt.granted,
  apply: ({ holders, token }) => {
    const holder = holders.get(outer);
    return holder && { holders: new Map(holders).set(outer, { ...holder, count: holder.count + 1 }), token };
  },
});

/** The end of a hold, which the last of those that share it takes away. One that is over already changes nothing. */
export const release = (
  id: number,
  attempt: Attempt,
  { from, to }: { from: number; to: number },
): LockOperation => ({
  attempt,
  what: 'gave it back',
  invoked: from,
  returned: to,
  apply: ({ holders, token }) => {
    const left = new Map(holders);
    const holder = left.get(id);
    if (holder !== undefined && holder.count > 1) left.set(id, { ...holder, count: holder.count - 1 });
    else left.delete(id);
    return { holders: left, token };
  },
});

/** The answer that somebody else has it. */
export const busy = (attempt: Attempt & { answered: number }, excused: boolean): LockOperation => ({
  attempt,
  what: 'was told that it is taken',
  invoked: attempt.invoked,
  returned: attempt.answered,
  observes: true,
  apply: (state) =>
    excused || !admits(state.holders, attempt.kind, attempt.mode, attempt.capacity) ? state : undefined,
});

/** The answer to an extension. */
export const extension = (
  id: number,
  attempt: Attempt,
  { from, to, held }: { from: number; to: number; held: boolean },
): LockOperation => ({
  attempt,
  what: held ? 'extended it' : 'could not extend it',
  invoked: from,
  returned: to,
  observes: true,
  apply: (state, at) => {
    const holder = state.holders.get(id);
    const possible = held ? holder !== undefined : holder === undefined || holder.until <= at;
    return possible ? state : undefined;
  },
});
