import type { Deployment, Server } from '../connection/deployment.js';
import { QUEUE_CHANNEL } from './queue-protocol.js';
import { countsOf } from '../commands/replies.js';
import * as scripts from '../commands/script.js';

/** How many clients are subscribed to each of some channels, as far as the servers have answered. */
export interface Subscribers {
  readonly counts: readonly number[];
  /** A server has not answered, or the user may not ask. */
  readonly isUncertain: boolean;
}

/**
 * On a cluster each node counts only its own subscribers. So a process without a subscription may have it at a node that has
 * become a master since the client looked, and counts as dead only if it has none after another look.
 */
export async function subscribersOf(
  connection: Deployment,
  channels: readonly string[],
): Promise<Subscribers> {
  const found = await count(connection, channels);
  const isLacking = channels.some((channel, n) => channel.startsWith(QUEUE_CHANNEL) && found.counts[n] === 0);
  if (!connection.isCluster || !isLacking) return found;
  await connection.refresh();
  return await count(connection, channels);
}

async function count(connection: Deployment, channels: readonly string[]): Promise<Subscribers> {
  const nodes = await connection.nodes();
  const answers = await Promise.allSettled(nodes.map((node) => subscribersAt(node, channels)));
  const counted = answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
  return {
    counts: channels.map((_, n) => counted.reduce((sum, counts) => sum + (counts[n] ?? 0), 0)),
    isUncertain: counted.length < answers.length,
  };
}

/** The same at one server. Rejects with its refusal, or if it does not answer. */
export const subscribersAt = async (node: Server, channels: readonly string[]): Promise<number[]> =>
  countsOf(await node.run(scripts.subscribers, [], channels), channels.length);
