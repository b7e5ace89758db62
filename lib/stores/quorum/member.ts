import type { LockStore } from '../lock-store.js';
import type { ClockReading } from './clocks.js';

/** One of the independent nodes of a quorum. */
export interface Member {
  /** Host and port. */
  readonly node: string;
  readonly store: LockStore;
  /** Another number after every lost connection: the server behind it may be another since. */
  readonly generation: number;
  /** Its connection is lost, or could not be made: nothing can be sent. False until that is known. */
  readonly isDown: boolean;
  /** Why nothing can be sent, as its store would say it of a command on `name`. */
  outage(name: string): Error;
  /** Asks the server who it is. */
  identify(): Promise<Incarnation>;
  /**
   * Leaves a note on the server for so many ms, unless there is one.
   * @param note hexadecimal digits
   * @returns whether it was left
   */
  note(note: string, time: number): Promise<boolean>;
}

/** One run of a server, from its start to its end. */
export interface Incarnation {
  /** Undefined where the server does not tell. */
  readonly runId: string | undefined;
  /**
   * ms since its start by its wall clock, and not more than these: it is more than its age where the clock has been set
   * forward since, and less, or negative, where it has been set back. Undefined where the server does not tell.
   */
  readonly uptime: number | undefined;
  /** Read after the uptime. */
  readonly clock: ClockReading;
  /** What was noted on it, if anything. */
  readonly noted: string | undefined;
}

/** So many of `count` that any two majorities have one in common. */
export const quorumOf = (count: number): number => Math.floor(count / 2) + 1;
