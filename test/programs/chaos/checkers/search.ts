/** One operation of a concurrent history. Whether it was carried out before or after another only its times tell. */
export interface Operation<S> {
  readonly invoked: number;
  /** Infinity when nobody knows whether it was carried out: it may be, at any time from `invoked` on. */
  readonly returned: number;
  /** It changes nothing, so that the first moment at which it is possible is as good as any other. */
  readonly observes?: boolean;
  /** After one with a greater rank it would be impossible for ever: those that have ranks are carried out in their order. */
  readonly rank?: number;
  /**
   * The state after it, or undefined if what it returned is impossible in this state.
   * @param at a moment by which it is carried out
   */
  apply(state: S, at: number): S | undefined;
}

/**
 * Searches for an order of the operations that a sequential object could have carried out and that agrees with their
 * times, as Wing and Gong do, operation by operation as they return (Lowe's just-in-time linearization), with a memory
 * of what has been tried. Nothing is decided before an operation returns that needs it.
 * @param keyOf tells states apart
 * @returns the first operation that no order explains; undefined when there is an order
 */
export function unexplained<S, O extends Operation<S>>(
  operations: readonly O[],
  initial: S,
  keyOf: (state: S) => string,
): O | undefined {
  const invocations = operations.toSorted((a, b) => a.invoked - b.invoked);
  const returns = operations
    .filter(({ returned }) => returned < Infinity)
    .sort((a, b) => a.returned - b.returned);
  const numbers = new Map(invocations.map((operation, index) => [operation, index]));
  const pending = new Set<O>();
  const keyOfCandidate = ({ state, done }: Candidate<S, O>): string => {
    if (done.size === 0) return keyOf(state);
    const carriedOut = Array.from(done, (one) => numbers.get(one) ?? -1);
    return `${keyOf(state)}|${carriedOut.sort((a, b) => a - b).join()}`;
  };
  let next = 0;
  let candidates: Candidate<S, O>[] = [{ state: initial, done: new Set() }];
  for (const operation of returns) {
    const at = operation.returned;
    for (; next < invocations.length && invocations[next]!.invoked <= at; next++)
      pending.add(invocations[next]!);
    const observing = [...pending].filter(({ observes }) => observes === true);
    const seen = new Set<string>();
    // Where no other one follows, the first needs no key.
    let first: Candidate<S, O> | undefined;
    const isNew = (candidate: Candidate<S, O>): boolean => {
      if (first === undefined && seen.size === 0) {
        first = candidate;
        return true;
      }
      if (first !== undefined) seen.add(keyOfCandidate(first));
      first = undefined;
      const key = keyOfCandidate(candidate);
      return !seen.has(key) && seen.add(key) === seen;
    };
    const explained: Candidate<S, O>[] = [];
    const visit = (from: Candidate<S, O>) => {
      const candidate = observe(from, observing, at);
      if (!isNew(candidate)) return;
      if (candidate.done.has(operation)) {
        explained.push(candidate);
        return;
      }
      const least = leastRank(pending, candidate.done);
      for (const one of pending) {
        if ((one.rank ?? least) > least || candidate.done.has(one)) continue;
        const state = one.apply(candidate.state, at);
        if (state !== undefined) visit({ state, done: new Set(candidate.done).add(one) });
      }
    };
    for (const candidate of candidates) visit(candidate);
    if (explained.length === 0) return operation;
    pending.delete(operation);
    for (const { done } of explained) done.delete(operation);
    candidates = explained;
  }
  return undefined;
}

/** Of those that have still to be carried out. */
function leastRank<S, O extends Operation<S>>(pending: Iterable<O>, done: ReadonlySet<O>): number {
  let least = Infinity;
  for (const one of pending)
    if (one.rank !== undefined && one.rank < least && one.returned < Infinity && !done.has(one))
      least = one.rank;
  return least;
}

interface Candidate<S, O> {
  readonly state: S;
  /** Those of the pending operations that have been carried out. */
  readonly done: Set<O>;
}

function observe<S, O extends Operation<S>>(
  from: Candidate<S, O>,
  observing: readonly O[],
  at: number,
): Candidate<S, O> {
  const { state, done } = from;
  const seen = observing.filter((one) => !done.has(one) && one.apply(state, at) !== undefined);
  return seen.length === 0 ? from : { state, done: new Set([...done, ...seen]) };
}
