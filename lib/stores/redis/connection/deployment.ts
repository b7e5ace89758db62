import type { Subscription } from '../../../store/lock-store.js';
import type { ConnectionChange } from '../../../store/store-health.js';
import type { AcquisitionGuard, Argument, Receipt } from '../commands/command.js';
import type { Script } from '../commands/script.js';
import type { Server } from './server.js';

export type { Server } from './server.js';

/** The target of a store's commands: one server, the master of a Sentinel deployment included, or a cluster's masters. */
export interface Deployment {
  /** Host and port for logs and health reports. */
  readonly node: string;
  /** The prefix that the client puts before every key. */
  readonly keyPrefix: string;
  /**
   * On a cluster PUBLISH does not count all subscribers. A message may have been dated by another clock than the clock of
   * the node that this process has asked before.
   */
  readonly isCluster: boolean;
  /** Whether a message goes only to the node that has its slot; false until that is known. */
  readonly sharded: boolean;
  /** Finds out `sharded`. Rejects if no node can be asked. */
  learnSharding(): Promise<void>;

  /**
   * Sends EVALSHA, and EVAL if the server does not know the script (a restart, a failover, SCRIPT FLUSH).
   * @param acquisition given for a command that a later one may undo. After that, it is not sent any more, nor sent
   * again. An answer from after a lost connection does not count, because the first copy of the command may still arrive
   * @param receipt is filled in
   */
  run(
    script: Script,
    keys: readonly string[],
    args: readonly Argument[],
    acquisition?: AcquisitionGuard,
    receipt?: Receipt,
  ): Promise<unknown>;

  /** Keys of one group may be in one command. */
  groupOf(key: string): number;

  /** The server for a command on `key`; undefined while that is open. */
  nodeOf(key: string): Server | undefined;

  /** Changes when a command on `key` that was under way may have been sent twice. */
  generationOf(key: string): number;

  /** Each server that has locks, as far as the client knows. Rejects if there is none. */
  nodes(): Promise<readonly Server[]>;

  /**
   * Asks which servers have locks: the client of a cluster that was idle does not know of a failover. Resolves with the answer, or
   * when no server has given one in time.
   */
  refresh(): Promise<void>;

  onChange(listener: (change: ConnectionChange) => void): void;

  close(): Promise<void>;
}

/** Is called with each message; with undefined if messages may have been missed. */
export type Listener = (message: string | undefined) => void;

/** The channels that a process is subscribed to. */
export interface Subscriptions {
  /** Resolves when the server has confirmed the subscription. */
  subscribe(channel: string, listener: Listener, sharded?: boolean): Promise<Subscription>;
  /** Why messages do not come through; undefined if they do, as far as the connections can tell. */
  obstacle(): Promise<unknown>;
  close(): Promise<void>;
}
