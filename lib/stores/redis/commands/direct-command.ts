import type { Cluster, Redis } from 'ioredis';
import type { Argument } from './command.js';

type Sender = Pick<Redis, 'options' | 'sendCommand'> | Pick<Cluster, 'options' | 'sendCommand'>;
type Send = (this: Sender, ...args: readonly Argument[]) => Promise<unknown>;

/**
 * A command of the client that leaves when it is called. With `enableAutoPipelining`, ioredis keeps its own commands until
 * the end of the turn. A SELECT that the application sends meanwhile overtakes them, and they are carried out in another
 * database. And a cluster's client learns nothing from a pipeline whose commands are redirected to several slots.
 */
export function directCommand(
  client: Redis | Cluster,
  name: string,
  /** Its sender. */
  by: Sender = client,
): (...args: readonly Argument[]) => Promise<unknown> {
  const { string: send } = client.createBuiltinCommand(name) as { string: Send };
  return send.bind(by);
}
