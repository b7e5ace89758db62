import type { AskRequest } from '../../../store/queue-messages.js';
import type { Deployment } from '../connection/deployment.js';
import { askedText, channelOf } from '../messages/queue-protocol.js';
import { codeOf } from './replies.js';
import type { ScriptCalls } from './script-calls.js';
import { subscribersOf } from '../messages/subscribers.js';

/**
 * Tells the client of an owner that another one asks for its lock.
 * @returns whether the client is subscribed
 */
export async function requestRelease(
  connection: Deployment,
  calls: ScriptCalls,
  request: AskRequest,
): Promise<boolean> {
  const { name, owner } = request;
  try {
    const { counts, isUncertain } = await subscribersOf(connection, [channelOf(owner)]);
    const [count = 0] = counts;
    // On a cluster each node passes the message on to all others, so it also reaches a subscriber that was not counted.
    if (count === 0 && !isUncertain && !connection.isCluster) return false;
    const receivers = await tell(connection, calls, name, owner, askedText(request));
    // PUBLISH counts subscribers of patterns too, and on a cluster only those of its own node.
    return count > 0 || (codeOf(receivers, 0, Infinity) > 0 && isUncertain);
  } catch (error) {
    throw calls.translated(error, name);
  }
}

/** Sends a message to the client of an owner of the lock. */
export async function tell(
  connection: Deployment,
  calls: ScriptCalls,
  name: string,
  owner: string,
  text: string,
): Promise<unknown> {
  const node = connection.nodeOf(calls.keys(name).lock) ?? (await connection.nodes())[0];
  return (await node?.send((client) => client.call('PUBLISH', channelOf(owner), text))) ?? 0;
}
