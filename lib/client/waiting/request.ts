import type { AcquireReply, AcquireRequest, QueueRequest, QueueTerms } from '../../store/lock-store.js';
import { deadlineOf, now } from '../holding/deadline.js';
import { asError } from '../../runtime/thrown.js';
import { tooLate } from './waiting.js';

/** The lock that a request asks for. */
export interface LockTerms {
  readonly name: string;
  /** Undefined if the store has no queues. */
  readonly queue: QueueTerms | undefined;
  /** The owner of this scope's own write hold, beside which the scope may read. */
  readonly ownWriteHold: string | undefined;
}

export type Grant = Extract<AcquireReply, { granted: true }>;
export type Refusal = Extract<AcquireReply, { granted: false }>;

/** A request under way. */
export interface Sent {
  readonly owner: string;
  /** ms */
  readonly leaseTime: number;
  readonly askedAt: number;
  /** Whether the request takes an entry in the store queue if the lock is busy. */
  readonly takesEntry: boolean;
  /** Whether the subscription to releases was active before the request, so that no later release is missed. */
  readonly wasSubscribed: boolean;
  /**
   * Whether one command carried the request and the release of another owner. A release of the request's own owner may
   * then have overtaken it.
   */
  readonly isJoint: boolean;
  /** Never rejects. */
  readonly reply: Promise<AcquireReply | Error>;
}

/** @param entry set if the owner takes an entry in the store queue when the lock is busy */
export function requestFor(
  { name, queue, ownWriteHold }: LockTerms,
  owner: string,
  leaseTime: number,
  entry?: QueueRequest['entry'],
): AcquireRequest {
  if (queue === undefined) return { name, owner, leaseTime };
  const { kind, mode, capacity } = queue;
  return { name, owner, leaseTime, queue: { kind, mode, capacity, entry, ownWriteHold } };
}

/**
 * The answer of the store. Never rejects, although a store of the application may reject, or answer with nothing. An
 * answer after the end of the lease that it grants counts as no answer.
 * @param ask may throw
 */
export async function answerOf<R extends { readonly granted: boolean }>(
  { name, leaseTime }: { readonly name: string; readonly leaseTime: number },
  askedAt: number,
  ask: () => Promise<R | null | undefined>,
): Promise<R | Error> {
  try {
    const answer = await ask();
    if (typeof answer?.granted !== 'boolean') return noReply();
    return answer.granted && now() >= deadlineOf(askedAt, leaseTime) ? tooLate(name) : answer;
  } catch (error) {
    return asError(error);
  }
}

const noReply = (): TypeError =>
  new TypeError('the store answers an acquisition with something else than whether it is granted');
