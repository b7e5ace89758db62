import { LockKindMismatchError } from '../api/errors.js';

interface Kind {
  readonly kind: string;
  readonly capacity: number;
}

const titleOf = ({ kind, capacity }: Kind) =>
  kind === 'semaphore'
    ? `semaphore with ${String(capacity)} permits`
    : `${kind} lock`.replace('lock lock', 'plain lock');

/** The error for a name that is requested as one kind and in use as another kind, or as a semaphore of another size. */
export const kindMismatch = (name: string, expected: Kind, found: Kind): LockKindMismatchError =>
  new LockKindMismatchError(name, { expected: titleOf(expected), found: titleOf(found) });

export const PLAIN = { kind: 'lock', capacity: 1 } as const;
