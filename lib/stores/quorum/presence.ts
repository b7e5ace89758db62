import { isLockUnavailableError } from '../../api/errors.js';
import { afterInput, clearTimer, monotonicTime, setTimer } from '../../runtime/runtime.js';
import type { Member } from './member.js';

/**
 * A member is silent when an answer is late by so many of its usual round trips, but not sooner or later than this, ms.
 */
const ROUND_TRIPS = 8;
const SOONEST = 40;
const LATEST = 250;
/** The weight of one answer in the usual round trip. */
const WEIGHT = 1 / 8;

/** What is known of one member. */
interface Attendance {
  silent: boolean;
  /** The usual time from a request to its answer, ms. */
  roundTrip: number | undefined;
  /** The number of requests that have not been answered. */
  unanswered: number;
  /** When the member last answered anything. */
  answeredAt: number;
}

/**
 * Which members answer. A member with a lost connection is known to be down. A member is silent from the moment in which an
 * answer is late until it answers anything again: its server may be frozen, or the network may drop what is sent. A member
 * that is down or silent is absent. Safety does not depend on this: it only decides which answers are waited for.
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

  /** Learns from the answer to a request that is sent now. */
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
   * A request is sent now.
   * @returns the moment, for `answered` or `failed`, one of which has to follow
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

  /** @returns the answer; undefined when the member has become absent before it */
  unlessAbsent<T>(index: number, answer: Promise<T>): Promise<T | undefined> {
    return new Promise((resolve, reject) => {
      const stop = this.onAbsence(index, () => {
        resolve(undefined);
      });
      answer.finally(stop).then(resolve, reject);
    });
  }

  /**
   * Calls back when the member has become absent, unless the returned function is called before. Only for a member that
   * keeps a request waiting.
   */
  onAbsence(index: number, callback: () => void): () => void {
    const of = this.attendance[index];
    let timer: NodeJS.Timeout | undefined;
    let over = false;
    const wait = () => {
      const since = monotonicTime();
      timer = setTimer(() => {
        // After a busy moment of this process the timers run first. An answer that has already arrived is read only after
        // them.
        afterInput(() => {
          if (over) return;
          // The member still answers earlier requests, or the wait is for something else.
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

/** Compares the name, because the member may come from another copy of this package. */
export const isTimeout = (error: unknown): boolean => causeOf(error) === 'CommandTimeout';

/** The request was given up before the member could carry it out, which is not a fault of the member. */
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
