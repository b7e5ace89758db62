import { Redis } from 'ioredis';

/** A plain client for what a test sets up and checks. It waits while there is no server, and is back soon after. */
export function assertionClient(url: string): Redis {
  const client = new Redis(url, {
    maxRetriesPerRequest: null,
    retryStrategy: () => 20,
    // ioredis waits so long for a socket to close, even for one that has closed, and keeps the process alive.
    disconnectTimeout: 0,
  });
  // An outage is mostly the test's own doing.
  client.on('error', () => undefined);
  return client;
}
