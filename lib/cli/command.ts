import type { Given } from './given.js';
import type { Screen } from './output/screen.js';

export interface CommandModule {
  /** Resolves with the exit code. */
  readonly run: (given: Given, screen: Screen) => Promise<number>;
}

/** The options of a command. `value`: an option with a value. `flag`: one without. */
export interface Command {
  /** What its arguments are called. One in brackets may be left out. */
  readonly arguments: readonly string[];
  readonly options: Readonly<Record<string, 'flag' | 'value'>>;
  /** Another program and its arguments follow `--`. */
  readonly runsProgram?: boolean;
  /** Loads what runs it, and only then ioredis and Nest. */
  readonly load: () => Promise<CommandModule>;
}
