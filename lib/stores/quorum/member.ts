import type { LockStore, StoreQueues } from '../../port/lock-store.js';

/** The store of a member has queues: their messages tell of holds that have been taken away. */
export type MemberStore = LockStore & { readonly queues: StoreQueues };

/** One of the independent nodes of a quorum. */
export interface Member {
  /** Host and port. */
  readonly node: string;
  readonly store: MemberStore;
  /**
   * The connection generation: another number after every lost connection, because another server may be behind it since.
   */
  readonly generation: number;
  /** The connection is lost, or could not be made: nothing can be sent. False until that is known. */
  readonly isDown: boolean;
  /** Why nothing can be sent, as the member's store would report it for a command on `name`. */
  outage(name: string): Error;
  /** Asks the server for its identity. */
  identify(): Promise<Incarnation>;
  /**
   * Leaves a note on the server for `time` ms, unless there is one already.
   * @param note hexadecimal digits
   * @returns whether the note was left
   */
  note(note: string, time: number): Promise<boolean>;
}

/** By how many ms a wall clock is ahead of this process's monotonic clock. A range, because the answer takes its time. */
export interface ClockReading {
  readonly least: number;
  readonly most: number;
}

/** One run of a server, from its start to its end. */
export interface Incarnation {
  /** Undefined where the server does not report it. */
  readonly runId: string | undefined;
  /**
   * A lower bound of the ms since the server's start by its wall clock. The value is more than the server's age where the
   * clock has been set forward since, and less, or negative, where the clock has been set back. Undefined where the server
   * does not report it.
   */
  readonly uptime: number | undefined;
  /** Read after the uptime. */
  readonly clock: ClockReading;
  /** The note on the server, if there is one. */
  readonly noted: string | undefined;
}

/** The size of a majority of `count` members: any two majorities have a member in common. */
export const quorumOf = (count: number): number => Math.floor(count / 2) + 1;
