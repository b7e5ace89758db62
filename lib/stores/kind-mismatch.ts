import { isLockKindMismatchError, LockKindMismatchError } from '../lock.errors.js';

interface Kind {
  readonly kind: string;
  readonly capacity: number;
}

const titleOf = ({ kind, capacity }: Kind) =>
  kind === 'semaphore'
    ? `semaphore with ${String(capacity)} permits`
    : `${kind} lock`.replace('lock lock', 'plain lock');

/** One name is asked for as one kind and in use as another, or as a semaphore of another size. */
export const kindMismatch = (name: string, expected: Kind, found: Kind): LockKindMismatchError =>
  new LockKindMismatchError(name, { expected: titleOf(expected), found: titleOf(found) });

export const PLAIN: Kind = { kind: 'lock', capacity: 1 };

/** What a store has under a name, which may be something else than a lock. */
export type Found<A> = A | LockKindMismatchError;

/**
 * For a `catch`. Something else under the name is an answer: the owner does not hold the lock. No second try would find it
 * again, and what is in its place may be taken away at any time.
 */
export function asAnswer(error: unknown): LockKindMismatchError {
  if (isLockKindMismatchError(error)) return error;
  throw error;
}
