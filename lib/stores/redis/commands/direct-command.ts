import type { Redis } from 'ioredis';
import type { Argument } from './command.js';

type Send = (this: Pick<Redis, 'options' | 'sendCommand'>, ...args: readonly Argument[]) => Promise<unknown>;

/**
 * A command of the client that leaves when it is called. With `enableAutoPipelining`, ioredis keeps its own commands until
 * the end of the turn. A SELECT that the application sends meanwhile overtakes them, and they are carried out in another
 * database.
 */
export function directCommand(
  client: Redis,
  name: string,
  /** Its sender. */
  by: Pick<Redis, 'options' | 'sendCommand'> = client,
): (...args: readonly Argument[]) => Promise<unknown> {
  const { string: send } = client.createBuiltinCommand(name) as { string: Send };
  return send.bind(by);
}
