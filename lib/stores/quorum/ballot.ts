import type { NodeOutcome } from '../../lock.errors.js';
import { quorumOf } from './member.js';
import type { Presence } from './presence.js';

/** What one member has answered, or why it has not. */
export type NodeAnswer<A> = { readonly value: A } | { readonly error: unknown };

/** What `decide` does about members that keep it waiting. */
export interface AnswerRule<A, D> {
  /** Which members answer; see Presence. */
  readonly presence: Pick<Presence, 'isAbsent' | 'onAbsence'>;
  /** What it comes to without the members that have not answered; undefined where they have to be waited for. */
  readonly without: (cast: readonly (NodeAnswer<A> | undefined)[]) => D | undefined;
}

/**
 * Asks `decision` after every answer, and is done as soon as it knows: members that cannot change it are not waited for.
 * @param answers in the order of the members
 * @param decision has to know once all have answered
 * @param patience without it every answer is waited for that could change the decision
 */
export function decide<A, D>(
  answers: readonly Promise<A>[],
  decision: (cast: readonly (NodeAnswer<A> | undefined)[]) => D | undefined,
  patience?: AnswerRule<A, D>,
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
      const decided = decision(cast) ?? (patience && giveUp(patience));
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

/** How many have answered, and with a value that passes. */
export const tally = <A>(
  cast: readonly (NodeAnswer<A> | undefined)[],
  passes: (value: A) => boolean = () => true,
): number =>
  cast.filter((answer) => answer !== undefined && 'value' in answer && passes(answer.value)).length;

/** One member's word on an acquisition. */
export type Vote<G, R> =
  | { readonly outcome: 'granted'; readonly grant: G }
  | { readonly outcome: 'taken'; readonly refusal: R }
  | { readonly outcome: 'quarantined' }
  | { readonly outcome: 'error' | 'timeout'; readonly error: unknown };

/** What all votes come to. */
export type Result<G, R> =
  | { readonly outcome: 'granted'; readonly grants: ReadonlyMap<number, G> }
  | { readonly outcome: 'taken'; readonly refusals: readonly R[]; readonly grants: number }
  | { readonly outcome: 'undecided' };

/**
 * Counts votes that have been cast: granted by a majority, or not to be granted any more. Then it is taken where a
 * majority has said something and some of them that; else too few have.
 * @returns undefined while the others may change it
 */
export function count<G, R>(cast: readonly (NodeAnswer<Vote<G, R>> | undefined)[]): Result<G, R> | undefined {
  const needed = quorumOf(cast.length);
  const votes = cast.map(voteOf);
  const grants = new Map<number, G>();
  const refusals: R[] = [];
  votes.forEach((vote, index) => {
    if (vote?.outcome === 'granted') grants.set(index, vote.grant);
    if (vote?.outcome === 'taken') refusals.push(vote.refusal);
  });
  if (grants.size >= needed) return { outcome: 'granted', grants };
  const pending = votes.filter((vote) => vote === undefined).length;
  if (grants.size + pending >= needed) return undefined;
  if (refusals.length > 0 && refusals.length + grants.size >= needed) {
    return { outcome: 'taken', refusals, grants: grants.size };
  }
  // It cannot be granted, but whether because somebody has it is still open.
  if (refusals.length + grants.size + pending >= needed && pending > 0) return undefined;
  return { outcome: 'undecided' };
}

function voteOf<G, R>(answer: NodeAnswer<Vote<G, R>> | undefined): Vote<G, R> | undefined {
  if (answer === undefined || 'value' in answer) return answer?.value;
  return { outcome: 'error', error: answer.error };
}

/**
 * What the votes come to without the members that have not voted.
 * @returns undefined where it is not a refusal: a grant, and the reason for which there is none, are waited for
 */
export function countWithout<G, R>(
  cast: readonly (NodeAnswer<Vote<G, R>> | undefined)[],
): Result<G, R> | undefined {
  const absent: NodeAnswer<Vote<G, R>> = { value: { outcome: 'timeout', error: undefined } };
  const result = count(cast.map((answer) => answer ?? absent));
  return result?.outcome === 'taken' ? result : undefined;
}

/** What one member has said, or that it has said nothing. */
export function outcomeOf(node: string, vote: Vote<unknown, unknown> | undefined): NodeOutcome {
  if (vote === undefined) return { node, outcome: 'timeout' };
  const { outcome } = vote;
  return 'error' in vote ? { node, outcome, error: vote.error } : { node, outcome };
}
