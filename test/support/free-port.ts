import { once } from 'node:events';
import { createServer } from 'node:net';

/** A port to be used soon, of those that neither servers, proxies nor outgoing connections of tests are given. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 13_000 + Math.floor(Math.random() * 4_000);
    const listener = createServer().listen(port, '127.0.0.1');
    const isFree = await once(listener, 'listening').then(
      () => true,
      () => false,
    );
    if (!isFree) continue;
    await once(listener.close(), 'close');
    return port;
  }
}

/** Nothing listens there, and no test is given it. */
export const DEAD_PORT = 1;
