import { type LockKindMismatchError, LockUnavailableError, type NodeOutcome } from '../../api/errors.js';
import { type Found, isLockKindMismatchError, isLockUnavailableError } from '../../api/error-guards.js';
import { isWorthAnotherTry, worthAnotherTry } from '../../store/another-try.js';
import { type Answers, type Ballot, gather, isMajority, tally, valuesOf } from './ballot.js';
import type { MemberStore } from './member.js';
import type { Quorum } from './quorum.js';

/** @throws LockUnavailableError without the answers of a majority */
export async function askMajority<A>(
  quorum: Quorum,
  name: string | undefined,
  ask: (store: MemberStore, index: number) => Promise<A> | undefined,
): Promise<Answers<A>> {
  const answers = await gather(quorum, ({ store }, index) => ask(store, index));
  if (isMajority(answers)) return answers;
  throw noMajority(quorum, name, answers, 'unknown');
}

/** The error for an operation without a majority. A member that has another kind of value under the name explains more. */
export function noMajority(
  { members, needed }: Quorum,
  name: string | undefined,
  answers: Answers<unknown>,
  effect: LockUnavailableError['effect'],
): LockUnavailableError | LockKindMismatchError {
  const outcomes = members.map(({ node }, index): NodeOutcome => {
    const answer = answers[index];
    if (answer === undefined) return { node, outcome: 'timeout' };
    if ('value' in answer) return { node, outcome: outcomeOf(answer.value) };
    const isLate = ['CommandTimeout', 'TakenBack'].includes(causeOf(answer.error) ?? '');
    return { node, outcome: isLate ? 'timeout' : 'error', error: answer.error };
  });
  const errors = outcomes.map(({ error }) => error);
  const mismatch = errors.find(isLockKindMismatchError);
  if (mismatch !== undefined) return mismatch;
  const said = outcomes.map(({ node, outcome }) => `${node}: ${outcome}`).join(', ');
  const cause = new Error(`no majority of the nodes (${said})`);
  const permanent =
    errors.filter((error) => isLockUnavailableError(error) && error.permanent).length >= needed;
  const unavailable = new LockUnavailableError(name, { cause, effect, permanent, outcomes });
  // What drops one idle connection mostly drops those to the other nodes, too.
  const isDropped = errors.some((error) => error instanceof Error && isWorthAnotherTry(error));
  return isDropped ? worthAnotherTry(unavailable) : unavailable;
}

function outcomeOf(value: unknown): NodeOutcome['outcome'] {
  if (value === 'quarantined') return value;
  const isRefused = (value as { granted?: boolean } | null | undefined)?.granted === false;
  return isRefused || value === 'taken' || value === 'deleted' ? 'taken' : 'granted';
}

/** Waits for the wanted answer of a majority of all members. @returns it, or the most specific reason against it */
export async function majorityFor<W extends string>(
  quorum: Quorum,
  name: string,
  ballot: Ballot<Found<string>>,
  wanted: W,
): Promise<Found<W | 'taken' | 'deleted'>> {
  const { needed } = quorum;
  const { answers } = ballot;
  const isGiven = () => tally(answers, (value) => value === wanted) >= needed;
  const isLost = () => tally(answers, (value) => value !== wanted) > ballot.asked - needed;
  await ballot.until(() => (isGiven() || isLost() ? 'decided' : 'open'));
  if (isGiven()) return wanted;
  if (!isLost()) throw noMajority(quorum, name, answers, 'unknown');
  const values = valuesOf(answers);
  const mismatch = values.find((value) => typeof value !== 'string');
  return mismatch ?? (values.includes('taken') ? 'taken' : 'deleted');
}

/** By name, because the member may come from another copy of this package. An error of the store itself is an answer. */
export const causeOf = (error: unknown): string | undefined =>
  !isLockUnavailableError(error) ? 'ReplyError' : error.cause instanceof Error ? error.cause.name : undefined;
