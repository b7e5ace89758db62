import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import type { Processes } from './processes.js';

const NO_REDIS = `There is no redis-server on the PATH. Install one, for example
  apt-get install redis-server    or    brew install redis
or name a server that runs already: REDIS_URL=redis://localhost:6379 npm run demo`;

/** The URL of the Redis that REDIS_URL names, else of one of our own, which writes nothing to disk. */
export async function findRedis(processes: Processes): Promise<string> {
  const { REDIS_URL } = process.env;
  if (REDIS_URL) return REDIS_URL;

  const port = String(await freePort());
  const args = ['--port', port, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', tmpdir()];
  try {
    await processes.start('redis-server', args, { ready: /ready to accept connections/i });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw new Error(NO_REDIS, { cause: error });
    throw error;
  }
  return `redis://127.0.0.1:${port}`;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
