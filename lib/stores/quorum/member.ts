import type { LockStore, StoreQueues } from '../../store/lock-store.js';

/** The store of a member has queues, whose messages report holds that were released by force. */
export type MemberStore = LockStore & { readonly queues: StoreQueues };

/** One of the independent nodes of a quorum. */
export interface Member {
  /** Host and port. */
  readonly node: string;
  readonly store: MemberStore;
  /**
   * Changes with every lost connection, because the next connection may lead to another server. One connection leads to
   * one run of a server.
   */
  readonly generation: number;
  /** Whether the connection is lost or could not be made, so that no command can be sent. False if unknown. */
  readonly isDown: boolean;
  /** The error that the member's store would report for a command on `name`. */
  outage(name: string): Error;
  /** Reads the run, the clock and the charter of the server. */
  identify(): Promise<Identity>;
  /** Adds to the charter. Numbers only grow, and an id is never replaced. @returns the charter after that */
  amend(amendment: Amendment): Promise<Charter | undefined>;
  /** @returns whether this member lets the process found the quorum */
  propose(id: string, run: string, proposal: string): Promise<boolean>;
  /** Notes a run of any member. @returns ms for which this member has known the run */
  witness(run: string): Promise<number>;
  /** Removes the note. */
  forget(run: string): Promise<void>;
}

/** The record of a quorum on each member. */
export interface Charter {
  readonly id: string;
  /** The number of members. */
  readonly size: number;
  /** ms after which every lease has ended that a restarted member may have forgotten. */
  readonly longest: number;
  /** ms; the longest hold. Each member has acknowledged at least this as `longest`. */
  readonly allowed: number;
  /** Lists of names under which services know the members. */
  readonly names: readonly string[];
  /** The run that has a vote. */
  readonly run: string | undefined;
  /** A run that must not vote yet, noted by a process in service. */
  readonly quarantined: string | undefined;
}

export interface Amendment extends Pick<Charter, 'id' | 'size' | 'longest' | 'allowed'> {
  /** One list of names, sorted. If undefined, no charter is made. */
  readonly names?: string | undefined;
  readonly run?: string | undefined;
  readonly quarantined?: string | undefined;
  /** The proposal of a founder. Nothing is added if another proposal has followed. */
  readonly proposal?: string | undefined;
}

export interface Identity {
  /** Distinguishes the runs of a server before and after a restart. Undefined if the server does not report it. */
  readonly runId: string | undefined;
  /** The server's time of day, ms. */
  readonly time: number;
  /** Undefined if the server has no charter. */
  readonly charter: Charter | undefined;
}

/** The size of a majority of `count` members: any two majorities have a member in common. */
export const quorumOf = (count: number): number => Math.floor(count / 2) + 1;
