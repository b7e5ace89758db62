import type { StoredLock } from '../../port/lock-store.js';
import type { Deployment } from './deployment.js';
import { clientOf, QUEUE_CHANNEL, storedLock, type Inspected } from './queue-protocol.js';
import { inspectReply } from './replies.js';
import * as scripts from './script.js';
import type { ScriptCalls } from './script-calls.js';
import { subscribersOf } from './subscribers.js';

/** Reads the state of a lock. */
export async function inspect(
  connection: Deployment,
  calls: ScriptCalls,
  name: string,
): Promise<StoredLock | null> {
  await calls.learnSharding(name);
  const keys = calls.keys(name);
  const [, channel] = calls.publishing(keys);
  const count = connection.sharded ? 'SHARDNUMSUB' : 'NUMSUB';
  const args = [count, channel, calls.clusterArgument];
  const found = await calls.run(scripts.inspect, keys.queued, args, name, inspectReply);
  if (found === null) return null;
  return storedLock(connection.isCluster ? await withSubscribers(connection, channel, found) : found);
}

/** With the subscribers of all nodes. */
async function withSubscribers(
  connection: Deployment,
  channel: string,
  found: Inspected,
): Promise<Inspected> {
  const { sharded } = connection;
  const clients = [...new Set(found.queue.map(([entry]) => clientOf(entry)))];
  const channels = [...(sharded ? [] : [channel]), ...clients.map((client) => QUEUE_CHANNEL + client)];
  if (channels.length === 0) return found;
  const { counts, isUncertain } = await subscribersOf(connection, channels);
  const ofClients = sharded ? counts : counts.slice(1);
  return {
    ...found,
    listeners: sharded ? found.listeners : (counts[0] ?? 0),
    dead: isUncertain ? [] : clients.filter((_, n) => ofClients[n] === 0),
  };
}
