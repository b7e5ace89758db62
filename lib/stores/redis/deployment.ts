import type { ConnectionChange, Subscription } from '../lock-store.js';
import type { ServerConnection } from './connection.js';
import type { Script } from './script.js';

export type Argument = string | number;

export interface Command {
  readonly keys: readonly string[];
  readonly args: readonly Argument[];
}

/** An acquisition that is under way, which a later command may take back. */
export interface AcquisitionGuard {
  readonly unwanted: boolean;
}

/** Where the commands of a store go: to one server, Sentinel's master included, or to the masters of a cluster. */
export interface Deployment {
  /** Host and port for logs and health reports. */
  readonly node: string;
  /** What the client puts before every key by itself. */
  readonly keyPrefix: string;
  /**
   * On a cluster PUBLISH does not count all who listen, and a message may have been dated by a clock that is not that
   * of the node which this process has asked before.
   */
  readonly isCluster: boolean;
  /** Whether a message goes only to the node that has its slot; false until that is known. */
  readonly sharded: boolean;
  /** Finds `sharded` out. Rejects where nobody can be asked. */
  learnSharding(): Promise<void>;

  /**
   * EVALSHA, and EVAL where the server does not know the script (a restart, a failover, SCRIPT FLUSH).
   * @param acquisition given for what a later command may take back: then it is not sent any more, nor sent again, and
   * an answer from after a lost connection does not count, because the first copy of the command may arrive yet
   */
  run(
    script: Script,
    keys: readonly string[],
    args: readonly Argument[],
    acquisition?: AcquisitionGuard,
  ): Promise<unknown>;

  /** Many at once, each with an answer of its own: a server that does not answer delays only its own. */
  runEach(script: Script, commands: readonly Command[]): readonly Promise<unknown>[];

  /** Keys of one group may stand in one command. */
  groupOf(key: string): number;

  /** Over which connection a command on `key` goes; undefined while that is open. */
  nodeOf(key: string): ServerConnection | undefined;

  /** Changes where a command on `key` that was under way may have been sent twice. */
  generationOf(key: string): number;

  /** A connection to each server that has locks. Rejects where there is none. */
  nodes(): Promise<readonly ServerConnection[]>;

  onChange(listener: (change: ConnectionChange) => void): void;

  close(): Promise<void>;
}

/** Hears each message; undefined where messages may have been missed. */
export type Listener = (message: string | undefined) => void;

/** The channels that a process hears. */
export interface Subscriptions {
  /** Resolves when the server has confirmed it. */
  subscribe(channel: string, listener: Listener, sharded?: boolean): Promise<Subscription>;
  /** Whether messages come through, as far as the connections can tell. */
  alive(): Promise<boolean>;
  close(): Promise<void>;
}
