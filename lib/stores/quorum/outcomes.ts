import { type LockKindMismatchError, LockUnavailableError, type NodeOutcome } from '../../api/errors.js';
import { type Found, isLockKindMismatchError, isLockUnavailableError } from '../../api/error-guards.js';
import { isWorthAnotherTry, worthAnotherTry } from '../../store/another-try.js';
import { type Answers, type Ballot, gather, isMajority, type Membership, tally, valuesOf } from './ballot.js';
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
  if (isMajority(answers)) return answers;
  throw noMajority(membership, name, answers, 'unknown');
}

/** The error for an operation without a majority. A member that has another kind of value under the name explains more. */
export function noMajority(
  { members }: Membership,
  name: string | undefined,
  answers: Answers<unknown>,
  effect: LockUnavailableError['effect'],
): LockUnavailableError | LockKindMismatchError {
  const outcomes = members.map(({ node }, index): NodeOutcome => {
    const answer = answers[index];
    if (answer === undefined) return { node, outcome: 'timeout' };
    if ('value' in answer) return { node, outcome: outcomeOf(answer.value) };
    return { node, outcome: isTimeout(answer.error) ? 'timeout' : 'error', error: answer.error };
  });
  const errors = outcomes.map(({ error }) => error);
  const mismatch = errors.find(isLockKindMismatchError);
  if (mismatch !== undefined) return mismatch;
  const said = outcomes.map(({ node, outcome }) => `${node}: ${outcome}`).join(', ');
  const cause = new Error(`no majority of the nodes (${said})`);
  const hopeless = errors.filter((error) => isLockUnavailableError(error) && error.permanent).length;
  const permanent = hopeless >= quorumOf(members.length);
  const unavailable = new LockUnavailableError(name, { cause, effect, permanent, outcomes });
  // What drops one idle connection mostly drops those to the other nodes, too.
  const isDropped = errors.some((error) => error instanceof Error && isWorthAnotherTry(error));
  return isDropped ? worthAnotherTry(unavailable) : unavailable;
}

function outcomeOf(value: unknown): NodeOutcome['outcome'] {
  if (value === 'quarantined') return value;
  const isRefused =
    value === 'taken' || value === 'deleted' || (value as { granted?: boolean } | null)?.granted === false;
  return isRefused ? 'taken' : 'granted';
}

/**
 * Waits until a majority of all members has given the wanted answer, or can no longer give it.
 * @param asked the number of members that are asked
 * @returns that answer, or the most specific reason against it: another kind of value, then another owner, then no owner
 */
export async function majorityFor<W extends string>(
  quorum: Membership,
  name: string,
  [ballot, asked]: readonly [ballot: Ballot<Found<string>>, asked: number],
  wanted: W,
): Promise<Found<W | 'taken' | 'deleted'>> {
  const needed = quorumOf(quorum.members.length);
  const isGiven = (cast: Answers<Found<string>>) => tally(cast, (value) => value === wanted) >= needed;
  const isLost = (cast: Answers<Found<string>>) => tally(cast, (value) => value !== wanted) > asked - needed;
  const answers = await ballot.until((cast) => (isGiven(cast) || isLost(cast) ? 'decided' : 'open'));
  if (isGiven(answers)) return wanted;
  if (!isLost(answers)) throw noMajority(quorum, name, answers, 'unknown');
  const values = valuesOf(answers);
  const mismatch = values.find((value) => typeof value !== 'string');
  return mismatch ?? (values.includes('taken') ? 'taken' : 'deleted');
}
