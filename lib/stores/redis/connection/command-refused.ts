import { FORBIDDEN, isReply, UNKNOWN, unwrapped } from './reply-texts.js';
import type { Script } from '../commands/script.js';

/** A command inside a script that the user may not send, or the server does not know. The commands before it are done. */
export class CommandRefused extends Error {
  constructor(
    readonly reply: Error,
    command: string,
  ) {
    super(`Redis refuses ${command} inside of a script: ${reply.message}`, { cause: reply });
    this.name = 'CommandRefused';
  }
}

/** How Redis 7.2 names the command. rights.include.lua does the same. */
const NAMED = /to run the '(\S+)' command/;
/** Before Redis 7.2 a refusal says only in which line of the script it has happened. Each line names one command at most. */
const LINE = /@user_script: ?(\d+)/;
export const COMMAND = /redis\.p?call\('([A-Z]+)'/;

/** The error with the name of the refused command, if the error is about a refused command. */
export function withCommand(error: unknown, { source }: Script): unknown {
  if (!isReply(error)) return error;
  const text = unwrapped(error);
  if (!FORBIDDEN.test(text) && !UNKNOWN.test(text)) return error;
  const line = source.split('\n')[Number(LINE.exec(error.message)?.[1]) - 1] ?? '';
  const command = NAMED.exec(text)?.[1]?.toUpperCase() ?? COMMAND.exec(line)?.[1];
  return command === undefined ? error : new CommandRefused(error, command);
}
