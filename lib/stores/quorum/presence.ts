import { isLockUnavailableError } from '../../api/error-guards.js';
import type { Answer } from './ballot.js';
import type { Member } from './member.js';

/**
 * Knows which members answer. A member is silent from a late answer until its next answer: its server may be frozen, or the
 * network may drop packets. A member that is silent, or whose connection is lost, is absent. Safety does not depend on
 * this: it only decides which answers a request waits for.
 */
export class Presence {
  private readonly silent = new Set<number>();

  constructor(private readonly members: readonly Member[]) {}

  isAbsent(index: number): boolean {
    return this.silent.has(index) || this.members[index]?.isDown === true;
  }

  /** The members that are not absent, in the order of the configuration, which is the same in all processes. */
  present(): number[] {
    return [...this.members.keys()].filter((index) => !this.isAbsent(index));
  }

  late(index: number): void {
    this.silent.add(index);
  }

  note(index: number, answer: Answer<unknown>): void {
    const cause = 'value' in answer ? 'ReplyError' : causeOf(answer.error);
    if (cause === 'ReplyError') this.silent.delete(index);
    if (cause === 'CommandTimeout' || cause === 'NotConnected') this.late(index);
  }
}

/** Whether a member was too late, or was given up before it could execute the request, which is no fault of it. */
export const isTimeout = (error: unknown): boolean =>
  ['CommandTimeout', 'TakenBack'].includes(causeOf(error) ?? '');

/** By name, because the member may come from another copy of this package. An error of the store itself is an answer. */
const causeOf = (error: unknown): string | undefined =>
  !isLockUnavailableError(error) ? 'ReplyError' : error.cause instanceof Error ? error.cause.name : undefined;
