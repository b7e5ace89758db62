import type { LockStore } from '../lock-store.js';

/** One of the independent nodes of a quorum. */
export interface Member {
  /** Host and port. */
  readonly node: string;
  readonly store: LockStore;
  /** Another number after every lost connection: the server behind it may be another since. */
  readonly epoch: number;
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
  /** ms since its start, and not more than it is. */
  readonly uptime: number | undefined;
  /** What was noted on it, if anything. */
  readonly noted: string | undefined;
}

/** So many of `count` that any two majorities have one in common. */
export const quorumOf = (count: number): number => Math.floor(count / 2) + 1;
