import type { NodeOutcome } from '../../api/errors.js';
import { quorumOf } from './member.js';
import type { Presence } from './presence.js';

/** The answer of one member, or its error. */
export type NodeAnswer<A> = { readonly value: A } | { readonly error: unknown };

/** Lets `decide` stop waiting for absent members. */
export interface AnswerRule<A, D> {
  /** Knows which members answer; see Presence. */
  readonly presence: Pick<Presence, 'isAbsent' | 'onAbsence'>;
  /** The decision without the members that have not answered; undefined if it needs their answers. */
  readonly without: (cast: readonly (NodeAnswer<A> | undefined)[]) => D | undefined;
}

/**
 * Calls `decision` after every answer and resolves with its first result, so it does not wait for members that cannot
 * change the decision.
 * @param answers in the order of the members
 * @param decision must decide after the answers of all members
 * @param rule if absent, `decide` waits for every answer that could change the decision
 */
export function decide<A, D>(
  answers: readonly Promise<A>[],
  decision: (cast: readonly (NodeAnswer<A> | undefined)[]) => D | undefined,
  rule?: AnswerRule<A, D>,
): Promise<D> {
  const cast: (NodeAnswer<A> | undefined)[] = answers.map(() => undefined);
  return new Promise((resolve) => {
    let done = false;
    const watched = new Map<number, () => void>();
    const giveUp = ({ presence, without }: AnswerRule<A, D>) => {
      const decided = without(cast);
      if (decided === undefined) return undefined;
      const awaited = [...cast.keys()].filter(
        (index) => cast[index] === undefined && !presence.isAbsent(index),
      );
      for (const index of awaited) {
        if (!watched.has(index)) watched.set(index, presence.onAbsence(index, consider));
      }
      return awaited.length === 0 ? decided : undefined;
    };
    const consider = () => {
      if (done) return;
      const decided = decision(cast) ?? (rule && giveUp(rule));
      if (decided === undefined) return;
      done = true;
      for (const stop of watched.values()) stop();
      resolve(decided);
    };
    const enter = (index: number, answer: NodeAnswer<A>) => {
      cast[index] = answer;
      consider();
    };
    answers.forEach((answering, index) => {
      answering.then(
        (value) => {
          enter(index, { value });
        },
        (error: unknown) => {
          enter(index, { error });
        },
      );
    });
  });
}

/** The number of members that have answered with a matching value. */
export const tally = <A>(
  cast: readonly (NodeAnswer<A> | undefined)[],
  passes: (value: A) => boolean = () => true,
): number =>
  cast.filter((answer) => answer !== undefined && 'value' in answer && passes(answer.value)).length;

/** The answer of one member to an acquisition. */
export type Vote<G, R> =
  | { readonly outcome: 'granted'; readonly grant: G }
  | { readonly outcome: 'taken'; readonly refusal: R }
  | { readonly outcome: 'quarantined' }
  | { readonly outcome: 'error' | 'timeout'; readonly error: unknown };

export type Result<G, R> =
  | { readonly outcome: 'granted'; readonly grants: ReadonlyMap<number, G> }
  | { readonly outcome: 'taken'; readonly refusals: readonly R[]; readonly grants: number }
  | { readonly outcome: 'undecided' };

/**
 * Counts the votes so far:
 * - granted, if a majority has granted,
 * - taken, if no majority can grant, a majority has granted or refused, and at least one member has refused,
 * - undecided, if neither is possible any more.
 * @returns undefined while missing votes may change the result
 */
export function count<G, R>(cast: readonly (NodeAnswer<Vote<G, R>> | undefined)[]): Result<G, R> | undefined {
  const needed = quorumOf(cast.length);
  const grants = new Map<number, G>();
  const refusals: R[] = [];
  let pending = 0;
  cast.forEach((answer, index) => {
    const vote = voteOf(answer);
    if (vote === undefined) pending++;
    else if (vote.outcome === 'granted') grants.set(index, vote.grant);
    else if (vote.outcome === 'taken') refusals.push(vote.refusal);
  });
  if (grants.size >= needed) return { outcome: 'granted', grants };
  if (grants.size + pending >= needed) return undefined;
  if (refusals.length > 0 && refusals.length + grants.size >= needed) {
    return { outcome: 'taken', refusals, grants: grants.size };
  }
  // No majority can grant, but the missing votes decide whether another owner holds the lock.
  if (refusals.length + grants.size + pending >= needed && pending > 0) return undefined;
  return { outcome: 'undecided' };
}

function voteOf<G, R>(answer: NodeAnswer<Vote<G, R>> | undefined): Vote<G, R> | undefined {
  if (answer === undefined || 'value' in answer) return answer?.value;
  return { outcome: 'error', error: answer.error };
}

/**
 * The result without the members that have not voted.
 * @returns undefined unless the result is a refusal: grants, and the reasons of failures, need all votes
 */
export function countWithout<G, R>(
  cast: readonly (NodeAnswer<Vote<G, R>> | undefined)[],
): Result<G, R> | undefined {
  if (!cast.some((answer) => voteOf(answer)?.outcome === 'taken')) return undefined;
  const absent: NodeAnswer<Vote<G, R>> = { value: { outcome: 'timeout', error: undefined } };
  const result = count(cast.map((answer) => answer ?? absent));
  return result?.outcome === 'taken' ? result : undefined;
}

/** The vote of one member for an error report. */
export function outcomeOf(node: string, vote: Vote<unknown, unknown> | undefined): NodeOutcome {
  if (vote === undefined) return { node, outcome: 'timeout' };
  const { outcome } = vote;
  return 'error' in vote ? { node, outcome, error: vote.error } : { node, outcome };
}
