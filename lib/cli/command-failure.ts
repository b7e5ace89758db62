import { EXIT } from './exit-code.js';

/** Ends the program with a line and an exit code. */
export class Failure extends Error {
  constructor(
    message: string,
    readonly exitCode: number,
  ) {
    super(message);
  }
}

/** The call is wrong: the line says what and the rule, and never repeats a value, which may be a password. */
export const usageFailure = (rule: string): Failure => new Failure(rule, EXIT.usage);
