/**
 * How far an owner is on its way to a lock in the store.
 *
 * - `idle`: no request has been sent yet. The subscription is being opened, or other processes get the time to receive the
 *   release before.
 * - `asking`: a request is under way.
 * - `standing`: the store has answered that the lock is busy, or has not answered. The owner asks again when a message
 *   tells it to, and at the time at which it has to look by itself.
 * - `granted`: the owner has the lock, and its callers have been told.
 * - `leaving`: no caller wants the lock any more. The hold that the owner may have got, and its entry, are given back.
 */
export type AcquisitionState = 'idle' | 'asking' | 'standing' | 'granted' | 'leaving';

/** Which state may follow which. A grant comes with the answer, or with a message that overtakes the answer. */
const FOLLOWING: Readonly<Record<AcquisitionState, readonly AcquisitionState[]>> = {
  idle: ['asking', 'granted', 'leaving'],
  asking: ['standing', 'granted', 'leaving'],
  standing: ['asking', 'granted', 'leaving'],
  // Final: an owner is never used twice.
  granted: [],
  leaving: [],
};

export const mayFollow = (state: AcquisitionState, next: AcquisitionState): boolean =>
  FOLLOWING[state].includes(next);
