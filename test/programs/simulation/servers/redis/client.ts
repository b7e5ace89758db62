import type { Actor } from '../../world/actor.js';
import type { Link } from '../../world/link.js';
import type { Package } from '../../world/program.js';
import type { RedisServer } from './redis-server.js';
import { SimulatedSocket } from './socket.js';

interface Options {
  readonly host: string;
  readonly Connector: never;
}

/** Options with which the ioredis of a process reaches a simulated server. */
export function simulatedConnection(
  { AbstractConnector }: Package,
  actor: Actor,
  link: Link,
  server: RedisServer,
): Options {
  /** As that of ioredis for a socket. */
  class SimulatedConnector extends AbstractConnector {
    constructor(options: { readonly disconnectTimeout: number }) {
      super(options.disconnectTimeout);
    }

    connect(): Promise<never> {
      this.connecting = true;
      const socket = new SimulatedSocket(actor, link, server);
      socket.once('error', (error) => {
        this.firstError = error;
      });
      // A socket to ioredis, and of the functions of one it uses no others.
      this.stream = socket as never;
      return Promise.resolve(socket as never);
    }
  }
  return { host: server.name.replace(' ', '-'), Connector: SimulatedConnector as never };
}
