/**
 * Where an owner is on its way to a lock in the store.
 *
 * - `idle`: nothing has been asked for yet; messages are being opened, or the release before is to be heard by others first.
 * - `asking`: a request is under way.
 * - `standing`: the store has answered that it is busy, or has not answered. The owner asks again when a message tells it to,
 *   and at the time at which it has to look by itself.
 * - `granted`: the lock is the owner's, and its callers have been told.
 * - `leaving`: nobody wants it any more; what it may have got, or stands for, is given back.
 */
export type AcquisitionState = 'idle' | 'asking' | 'standing' | 'granted' | 'leaving';

/** Which state may follow which. A grant comes with the answer, or with a message that overtakes it. */
const FOLLOWING: Readonly<Record<AcquisitionState, readonly AcquisitionState[]>> = {
  idle: ['asking', 'granted', 'leaving'],
  asking: ['standing', 'granted', 'leaving'],
  standing: ['asking', 'granted', 'leaving'],
  // For good: owners are never used twice.
  granted: [],
  leaving: [],
};

export const mayFollow = (state: AcquisitionState, next: AcquisitionState): boolean =>
  FOLLOWING[state].includes(next);
