import type { StoredLock } from '../../../store/lock-store.js';
import type { Deployment } from '../connection/deployment.js';
import { waiterOf, QUEUE_CHANNEL, storedLock, type Inspected } from '../messages/queue-protocol.js';
import { inspectReply } from './replies.js';
import * as scripts from './script.js';
import type { ScriptCalls } from './script-calls.js';
import { subscribersOf } from '../messages/subscribers.js';

/** Reads the state of a lock. */
export async function inspect(
  connection: Deployment,
  calls: ScriptCalls,
  name: string,
): Promise<StoredLock | null> {
  const found = await read(connection, calls, name);
  if (found === null) return null;
  const [, channel] = calls.publishing(calls.keys(name));
  return storedLock(connection.isCluster ? await withSubscribers(connection, channel, found) : found);
}

/** What inspect.lua tells, also of a cluster. */
export async function read(
  connection: Deployment,
  calls: ScriptCalls,
  name: string,
): Promise<Inspected | null> {
  await calls.learnSharding(name);
  const keys = calls.keys(name);
  const [, channel] = calls.publishing(keys);
  const count = connection.sharded ? 'SHARDNUMSUB' : 'NUMSUB';
  const args = [count, channel, calls.clusterArgument];
  return await calls.run(scripts.inspect, keys.queued, args, name, inspectReply);
}

/** With the subscribers of all nodes. */
async function withSubscribers(
  connection: Deployment,
  channel: string,
  found: Inspected,
): Promise<Inspected> {
  const { sharded } = connection;
  const clients = [...new Set(found.queue.map(([entry]) => waiterOf(entry)))];
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
