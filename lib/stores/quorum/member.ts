import type { LockStore, StoreQueues } from '../../store/lock-store.js';

/** The store of a member has queues: their messages tell of holds that have been taken away. */
export type MemberStore = LockStore & { readonly queues: StoreQueues };

/** One of the independent nodes of a quorum. */
export interface Member {
  /** Host and port. */
  readonly node: string;
  readonly store: MemberStore;
  /**
   * The connection generation: another number after every lost connection, because another server may be behind it since.
   * One connection leads to one run of a server.
   */
  readonly generation: number;
  /** The connection is lost, or could not be made: nothing can be sent. False until that is known. */
  readonly isDown: boolean;
  /** Why nothing can be sent, as the member's store would report it for a command on `name`. */
  outage(name: string): Error;
  /** Asks the server for its run, its clock and its charter. */
  identify(): Promise<Identity>;
  /** Adds to the charter. Numbers only grow, and an id is never replaced. @returns what the charter is then */
  amend(amendment: Amendment): Promise<Charter | undefined>;
  /** @returns whether the process may found the quorum, as far as this member is concerned */
  propose(id: string, run: string, proposal: string): Promise<boolean>;
  /** Notes that there is this run of some member. @returns ms for which this member has known that */
  witness(run: string): Promise<number>;
  /** Removes the note. */
  forget(run: string): Promise<void>;
}

/** What a member remembers of its quorum. */
export interface Charter {
  readonly id: string;
  /** The number of members. */
  readonly size: number;
  /** ms: every lease that a restarted member may have forgotten has ended after this time. */
  readonly longest: number;
  /** ms: each member has acknowledged a `longest` of at least this. No hold lasts longer. */
  readonly allowed: number;
  /** Lists of names under which services know the members. */
  readonly names: readonly string[];
  /** The run that has a vote. */
  readonly run: string | undefined;
  /** A run that must not vote yet, as a process in service has found it. */
  readonly quarantined: string | undefined;
}

export interface Amendment extends Pick<Charter, 'id' | 'size' | 'longest' | 'allowed'> {
  /** One list of names, sorted. Undefined makes no charter. */
  readonly names?: string | undefined;
  readonly run?: string | undefined;
  readonly quarantined?: string | undefined;
  /** What a founder has proposed. Nothing is added where another proposal has followed. */
  readonly proposal?: string | undefined;
}

export interface Identity {
  /** Distinguishes a server from itself after a restart. Undefined where the server does not report it. */
  readonly runId: string | undefined;
  /** The server's time of day, ms. */
  readonly time: number;
  /** Undefined where the server has none. */
  readonly charter: Charter | undefined;
}

/** The size of a majority of `count` members: any two majorities have a member in common. */
export const quorumOf = (count: number): number => Math.floor(count / 2) + 1;
