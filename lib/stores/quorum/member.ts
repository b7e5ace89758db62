import type { LockStore } from '../../store/lock-store.js';

/** The store of a member has queues, whose messages report holds that were released by force. */
export type MemberStore = LockStore & {
  readonly [Part in 'queues' | 'labels' | 'waits' | 'listing']-?: NonNullable<LockStore[Part]>;
};

export interface Member {
  readonly node: string;
  readonly store: MemberStore;
  /** Changes with every lost connection. One connection leads to one run of a server, and the next one may lead elsewhere. */
  readonly generation: number;
  /** Whether the connection is lost or could not be made, so that no command can be sent. False if unknown. */
  readonly isDown: boolean;
  /** The error that the member's store would report for a command on `name`. */
  outage(name: string): Error;
  /** Distinguishes the runs of the server, before and after a restart. Undefined if the server does not report it. */
  run(): Promise<string | undefined>;
  /** Reads the charter, after a change of it. An id is never replaced, and only the members of that quorum are changed. */
  charter(change?: Change): Promise<Report>;
}

/** The numbers on which all members of a quorum should agree. */
export interface Numbers {
  readonly id: string;
  /** ms after which every lease has ended that a restarted member may have forgotten. */
  readonly longest: number;
  /** ms; the longest hold. Each member with a vote has at least this as `longest`. */
  readonly allowed: number;
}

/** The record of a quorum on each member. */
export interface Charter extends Numbers {
  readonly size: number;
  /** Lists of names under which services know the members. */
  readonly names: readonly string[];
  /** The run that has a vote. */
  readonly run: string | undefined;
  /** A run that must not vote yet, noted by a process in service. */
  readonly quarantined: string | undefined;
  /** The first claim of a founder in a run, with the longest hold that the founder wants, ms. */
  readonly claim: { readonly run: string; readonly allowed: number } | undefined;
  /** By run of any member, ms for which this member has known it. */
  readonly known: ReadonlyMap<string, number>;
}

/** `longest` only grows, and of several claims in one run the first one stays. */
export interface Change
  extends
    Pick<Charter, 'id' | 'size' | 'longest'>,
    Partial<Pick<Charter, 'allowed' | 'run' | 'quarantined' | 'claim'>> {
  /** One list of names, sorted. If undefined, no charter is made. */
  readonly names?: string | undefined;
  /** Runs that the member should know from now on. */
  readonly known?: readonly string[];
}

export interface Report {
  /** The server's time of day, ms. */
  readonly time: number;
  readonly charter: Charter | undefined;
}

/** The size of a majority of `count` members: any two majorities have a member in common. */
export const quorumOf = (count: number): number => Math.floor(count / 2) + 1;
