import { isLockUnavailableError } from '../../api/error-guards.js';
import { afterInput, clearTimer, monotonicTime, setTimer } from '../../runtime/runtime.js';
import type { Member } from './member.js';

/** A member is silent when an answer is late by this number of its usual round trips, within these limits, ms. */
const ROUND_TRIPS = 8;
const SOONEST = 40;
const LATEST = 250;
/** The weight of one answer in the usual round trip. */
const WEIGHT = 1 / 8;

/** The record of one member. */
interface Attendance {
  silent: boolean;
  /** The usual time from a request to its answer, ms. */
  roundTrip: number | undefined;
  /** The number of requests without an answer. */
  unanswered: number;
  /** The moment of the member's last answer. */
  answeredAt: number;
}

/**
 * Knows which members answer. A member is down if its connection is lost. A member is silent from a late answer until
 * its next answer: its server may be frozen, or the network may drop packets. A member that is down or silent is
 * absent. Safety does not depend on this: it only decides which answers a request waits for.
 */
export class Presence {
  private readonly attendance: readonly Attendance[];

  constructor(private readonly members: readonly Member[]) {
    this.attendance = members.map(() => ({
      silent: false,
      roundTrip: undefined,
      unanswered: 0,
      answeredAt: -Infinity,
    }));
  }

  /** Learns from the answer to a request that is being sent. */
  observe<T>(index: number, answer: Promise<T>): Promise<T> {
    const sentAt = this.asked(index);
    answer.then(
      () => {
        this.answered(index, sentAt);
      },
      (error: unknown) => {
        this.failed(index, sentAt, error);
      },
    );
    return answer;
  }

  /**
   * Records that a request is being sent.
   * @returns the moment for the call of `answered` or `failed` that must follow
   */
  asked(index: number): number {
    const of = this.attendance[index];
    if (of !== undefined) of.unanswered++;
    return monotonicTime();
  }

  answered(index: number, sentAt: number): void {
    const of = this.attendance[index];
    if (of === undefined) return;
    of.unanswered--;
    noteAnswer(of, sentAt);
  }

  failed(index: number, sentAt: number, error: unknown): void {
    const of = this.attendance[index];
    if (of === undefined) return;
    of.unanswered--;
    const cause = isLockUnavailableError(error) ? causeOf(error) : 'ReplyError';
    if (cause === 'ReplyError') noteAnswer(of, sentAt);
    if (cause === 'CommandTimeout' || cause === 'NotConnected') of.silent = true;
  }

  isAbsent(index: number): boolean {
    return this.attendance[index]?.silent === true || this.members[index]?.isDown === true;
  }

  /** The members that are not absent, in the order of the configuration, which is the same in all processes. */
  present(): number[] {
    return [...this.members.keys()].filter((index) => !this.isAbsent(index));
  }

  /** @returns the answer; undefined if the member becomes absent before it */
  unlessAbsent<T>(index: number, answer: Promise<T>): Promise<T | undefined> {
    return new Promise((resolve, reject) => {
      const stop = this.onAbsence(index, () => {
        resolve(undefined);
      });
      answer.finally(stop).then(resolve, reject);
    });
  }

  /**
   * Calls back when the member becomes absent. Use it only for a member that keeps a request waiting.
   * @returns a function that ends the watch
   */
  onAbsence(index: number, callback: () => void): () => void {
    const of = this.attendance[index];
    let timer: NodeJS.Timeout | undefined;
    let over = false;
    const wait = () => {
      const since = monotonicTime();
      timer = setTimer(() => {
        // After a busy moment of this process, timers run before answers that have already arrived.
        afterInput(() => {
          if (over) return;
          // The member answers earlier requests, or the wait is for something else.
          if (of === undefined || of.unanswered === 0 || of.answeredAt > since) {
            wait();
            return;
          }
          of.silent = true;
          callback();
        });
      }, answerTimeOf(of));
    };
    wait();
    return () => {
      over = true;
      clearTimer(timer);
    };
  }
}

/** By name, because the member may come from another copy of this package. */
export const isTimeout = (error: unknown): boolean => causeOf(error) === 'CommandTimeout';

/** Whether the caller gave the request up before the member could execute it, which is no fault of the member. */
export const isTakenBack = (error: unknown): boolean => causeOf(error) === 'TakenBack';

function causeOf(error: unknown): string | undefined {
  return isLockUnavailableError(error) && error.cause instanceof Error ? error.cause.name : undefined;
}

function noteAnswer(of: Attendance, sentAt: number): void {
  const now = monotonicTime();
  const usual = of.roundTrip ?? now - sentAt;
  of.silent = false;
  of.answeredAt = now;
  of.roundTrip = usual + (now - sentAt - usual) * WEIGHT;
}

const answerTimeOf = (of: Attendance | undefined): number =>
  Math.min(Math.max(ROUND_TRIPS * (of?.roundTrip ?? 0), SOONEST), LATEST);
