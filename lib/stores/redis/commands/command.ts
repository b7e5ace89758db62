import type { Server } from '../connection/server.js';

export type Argument = string | number;

/** The arguments of a script. */
export interface Command {
  readonly keys: readonly string[];
  readonly args: readonly Argument[];
  readonly receipt?: Receipt | undefined;
}

/** Over which connection a command was last sent. While a slot is on the way to another node, only the answers tell. */
export interface Receipt {
  server?: Server;
  /** Of the connection. */
  generation?: number;
}

/** An acquisition that is under way, which a later command may take back. */
export interface AcquisitionGuard {
  readonly unwanted: boolean;
}
