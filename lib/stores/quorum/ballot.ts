import type { NodeOutcome } from '../../lock.errors.js';
import { quorumOf } from './member.js';

/** What one member has answered, or why it has not. */
export type Answer<A> = { readonly value: A } | { readonly error: unknown };

/**
 * Asks `decision` after every answer, and is done as soon as it knows: nobody waits for members who cannot change it.
 * @param decision has to know once all have answered
 */
export function decide<A, D>(
  answers: readonly Promise<A>[],
  decision: (cast: readonly (Answer<A> | undefined)[]) => D | undefined,
): Promise<D> {
  const cast: (Answer<A> | undefined)[] = answers.map(() => undefined);
  return new Promise((resolve) => {
    answers.forEach((answering, index) => {
      const enter = (answer: Answer<A>) => {
        cast[index] = answer;
        const decided = decision(cast);
        if (decided !== undefined) resolve(decided);
      };
      answering.then(
        (value) => {
          enter({ value });
        },
        (error: unknown) => {
          enter({ error });
        },
      );
    });
  });
}

/** How many have answered, and with a value that passes. */
export const tally = <A>(
  cast: readonly (Answer<A> | undefined)[],
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
export function count<G, R>(cast: readonly (Answer<Vote<G, R>> | undefined)[]): Result<G, R> | undefined {
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

function voteOf<G, R>(answer: Answer<Vote<G, R>> | undefined): Vote<G, R> | undefined {
  if (answer === undefined || 'value' in answer) return answer?.value;
  return { outcome: 'error', error: answer.error };
}

/** What one member has said, or that it has said nothing. */
export function outcomeOf(node: string, vote: Vote<unknown, unknown> | undefined): NodeOutcome {
  if (vote === undefined) return { node, outcome: 'timeout' };
  const { outcome } = vote;
  return 'error' in vote ? { node, outcome, error: vote.error } : { node, outcome };
}
