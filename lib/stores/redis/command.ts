export type Argument = string | number;

/** What a script is called with. */
export interface Command {
  readonly keys: readonly string[];
  readonly args: readonly Argument[];
}

/** An acquisition that is under way, which a later command may take back. */
export interface AcquisitionGuard {
  readonly unwanted: boolean;
}
