import { codeOf } from '../commands/replies.js';
import type { Server } from './deployment.js';
import { isPermanent, NotConnected, replyCode } from './redis-errors.js';

/** Answers after which the node may not be the right one any more. */
export const OUTDATED = new Set(['CLUSTERDOWN', 'LOADING', 'MASTERDOWN', 'READONLY']);

/**
 * Whether all nodes send a message only to the node that has its slot. A node that gives no answer does not count.
 * @param lastError why there is no connection, if no node answers
 */
export async function isSharded(nodes: readonly Server[], lastError: unknown): Promise<boolean> {
  const answers = await Promise.allSettled(
    nodes.map(async (node) =>
      codeOf(await node.send((client) => client.call('SPUBLISH', 'lock_sharding', '')), 0, Infinity),
    ),
  );
  const known = answers.flatMap((answer) => {
    if (answer.status === 'fulfilled') return true;
    const code = replyCode(answer.reason);
    // A node that does not know the command says ERR. A user that may not use it does without it.
    return code === undefined || OUTDATED.has(code) ? [] : code !== 'ERR' && code !== 'NOPERM';
  });
  if (known.length > 0) return known.every(Boolean);
  const reasons = answers.map((answer) =>
    answer.status === 'rejected' ? (answer.reason as Error) : undefined,
  );
  throw reasons.find(isPermanent) ?? new NotConnected('no node answers', lastError);
}
