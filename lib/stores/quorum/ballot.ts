import type { NodeOutcome } from '../../api/errors.js';
import { quorumOf } from './member.js';
import type { Presence } from './presence.js';

/** What one member has answered, or why it has not. */
export type NodeAnswer<A> = { readonly value: A } | { readonly error: unknown };

/** How `decide` treats members that keep it waiting. */
export interface AnswerRule<A, D> {
  /** Which members answer; see Presence. */
  readonly presence: Pick<Presence, 'isAbsent' | 'onAbsence'>;
  /** The decision without the members that have not answered; undefined where their answers are needed. */
  readonly without: (cast: readonly (NodeAnswer<A> | undefined)[]) => D | undefined;
}

/**
 * Calls `decision` after every answer and resolves as soon as it decides: members that cannot change the decision are not
 * waited for.
 * @param answers in the order of the members
 * @param decision has to decide once all members have answered
 * @param rule without it `decide` waits for every answer that could change the decision
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

/** How many members have answered with a value that passes. */
export const tally = <A>(
  cast: readonly (NodeAnswer<A> | undefined)[],
  passes: (value: A) => boolean = () => true,
): number =>
  cast.filter((answer) => answer !== undefined && 'value' in answer && passes(answer.value)).length;

/** One member's answer to an acquisition. */
export type Vote<G, R> =
  | { readonly outcome: 'granted'; readonly grant: G }
  | { readonly outcome: 'taken'; readonly refusal: R }
  | { readonly outcome: 'quarantined' }
  | { readonly outcome: 'error' | 'timeout'; readonly error: unknown };

/** The result of all votes. */
export type Result<G, R> =
  | { readonly outcome: 'granted'; readonly grants: ReadonlyMap<number, G> }
  | { readonly outcome: 'taken'; readonly refusals: readonly R[]; readonly grants: number }
  | { readonly outcome: 'undecided' };

/**
 * Counts the votes that have been cast. The lock is granted by a majority, or it can no longer be granted. In the second
 * case it is taken where a majority has granted or refused and at least one member of that majority has refused. Else too
 * few members have granted or refused.
 * @returns undefined while the missing votes may change the result
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
  // The lock cannot be granted. Whether another owner holds it is still open.
  if (refusals.length + grants.size + pending >= needed && pending > 0) return undefined;
  return { outcome: 'undecided' };
}

function voteOf<G, R>(answer: NodeAnswer<Vote<G, R>> | undefined): Vote<G, R> | undefined {
  if (answer === undefined || 'value' in answer) return answer?.value;
  return { outcome: 'error', error: answer.error };
}

/**
 * The result without the members that have not voted.
 * @returns undefined where the result is not a refusal: a grant, and the reason for which there is none, are waited for
 */
export function countWithout<G, R>(
  cast: readonly (NodeAnswer<Vote<G, R>> | undefined)[],
): Result<G, R> | undefined {
  if (!cast.some((answer) => voteOf(answer)?.outcome === 'taken')) return undefined;
  const absent: NodeAnswer<Vote<G, R>> = { value: { outcome: 'timeout', error: undefined } };
  const result = count(cast.map((answer) => answer ?? absent));
  return result?.outcome === 'taken' ? result : undefined;
}

/** What one member has answered, or that it has not answered. */
export function outcomeOf(node: string, vote: Vote<unknown, unknown> | undefined): NodeOutcome {
  if (vote === undefined) return { node, outcome: 'timeout' };
  const { outcome } = vote;
  return 'error' in vote ? { node, outcome, error: vote.error } : { node, outcome };
}
