import { type LockKindMismatchError, LockUnavailableError, type NodeOutcome } from '../../api/errors.js';
import { type Found, isLockKindMismatchError, isLockUnavailableError } from '../../api/error-guards.js';
import { isWorthAnotherTry, worthAnotherTry } from '../../store/another-try.js';
import { type Answers, type Membership, gather, tally, valuesOf } from './ballot.js';
import { type Member, quorumOf } from './member.js';
import { isTimeout } from './presence.js';

/**
 * Asks all members, or those for which `ask` returns a promise.
 * @throws LockUnavailableError without the answers of a majority
 */
export async function askMajority<A>(
  membership: Membership,
  name: string | undefined,
  ask: (member: Member, index: number) => Promise<A> | undefined,
): Promise<Answers<A>> {
  const answers = await gather(membership, ask);
  const { members } = membership;
  if (tally(answers) >= quorumOf(members.length)) return answers;
  throw mismatchAmong(answers) ?? noMajority(name, outcomesOf(members, answers), 'unknown');
}

/** The answer of each member for an error report. */
export function outcomesOf(members: readonly Member[], answers: Answers<unknown>): NodeOutcome[] {
  return members.map(({ node }, index) => {
    const answer = answers[index];
    if (answer === undefined) return { node, outcome: 'timeout' };
    if ('value' in answer) return { node, outcome: outcomeOf(answer.value) };
    return { node, outcome: isTimeout(answer.error) ? 'timeout' : 'error', error: answer.error };
  });
}

function outcomeOf(value: unknown): NodeOutcome['outcome'] {
  if (value === 'quarantined') return value;
  const isRefused =
    value === 'taken' || value === 'deleted' || (value as { granted?: boolean } | null)?.granted === false;
  return isRefused ? 'taken' : 'granted';
}

/** The error for an operation without a majority. */
export function noMajority(
  name: string | undefined,
  outcomes: readonly NodeOutcome[],
  effect: 'refused' | 'unknown',
): LockUnavailableError {
  const said = outcomes.map(({ node, outcome }) => `${node}: ${outcome}`).join(', ');
  const cause = new Error(`no majority of the nodes (${said})`);
  const errors = outcomes.map(({ error }) => error);
  const hopeless = errors.filter((error) => isLockUnavailableError(error) && error.permanent).length;
  const permanent = hopeless >= quorumOf(outcomes.length);
  const unavailable = new LockUnavailableError(name, { cause, effect, permanent, outcomes });
  // What drops one idle connection mostly drops those to the other nodes, too.
  const isDropped = errors.some((error) => error instanceof Error && isWorthAnotherTry(error));
  return isDropped ? worthAnotherTry(unavailable) : unavailable;
}

/**
 * The most specific reason why a majority does not hold a lock: another kind of value, then another owner, then no
 * owner.
 */
export function whyNotHeld(answers: Answers<Found<string>>): Found<'taken' | 'deleted'> {
  const values = valuesOf(answers);
  const mismatch = values.find((value) => typeof value !== 'string');
  return mismatch ?? (values.includes('taken') ? 'taken' : 'deleted');
}

/** The error of a member that has another kind of value under the name of the lock. */
export const mismatchAmong = (answers: Answers<unknown>): LockKindMismatchError | undefined =>
  answers
    .map((answer) => (answer !== undefined && 'error' in answer ? answer.error : undefined))
    .find(isLockKindMismatchError);
