import { RedisServer } from '../../support/redis-server.js';
import type { ServerFigures } from './measures.js';

/**
 * A server that keeps its data over a restart, as one with locks should: each command is in the system's hands before
 * it is answered, so a killed process loses none. The file is rewritten often, so that a restart reads little.
 */
export const startServer = (): Promise<RedisServer> =>
  RedisServer.start({
    args: ['--appendonly', 'yes', '--appendfsync', 'no', '--auto-aof-rewrite-min-size', '4mb'],
  });

export async function figuresOf(server: RedisServer): Promise<ServerFigures> {
  const client = server.client();
  const [keys, text] = [await client.dbsize(), await client.info()];
  const figure = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(text)?.[1]);
  return {
    keys,
    clients: figure('connected_clients'),
    channels: figure('pubsub_channels'),
    memory: figure('used_memory') / 2 ** 20,
  };
}
