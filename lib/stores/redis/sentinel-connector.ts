import { SentinelConnector, type Redis, type RedisOptions } from 'ioredis';

type Connector = NonNullable<RedisOptions['Connector']>;
type Emit = Parameters<SentinelConnector['connect']>[0];
type Open = (endpoint: { host?: string; port?: number }, options?: RedisOptions) => Redis;

/** What ioredis says of a refused connection instead of the reason. */
const CLOSED = /Connection is closed\.$/;

/**
 * The connector of ioredis, with listeners for the errors of its own connections to sentinels. ioredis has no such listener
 * on the connections that watch for a failover, so each dead sentinel writes a stack to stderr with every connection. Of a
 * sentinel that cannot be reached, ioredis tells only that the connection is closed.
 */
function listeningConnector(Base: typeof SentinelConnector): Connector {
  class Listening extends Base {
    private reason: Error | undefined;

    constructor(options: RedisOptions) {
      super(options);
      const open: unknown = Reflect.get(this, 'connectToSentinel');
      // An internal method of ioredis. If a version has it under another name, the connector works as without this class.
      if (typeof open !== 'function') return;
      const { disconnectTimeout } = options;
      Reflect.set(this, 'connectToSentinel', (...[endpoint, others]: Parameters<Open>) => {
        // Otherwise 2 s, for which a connection that was never made would keep a process alive that has shut down.
        const settings = disconnectTimeout === undefined ? others : { ...others, disconnectTimeout };
        const client = (open as Open).call(this, endpoint, settings);
        client.on('error', (error) => (this.reason = error));
        return client;
      });
    }

    override connect(emit: Emit): ReturnType<SentinelConnector['connect']> {
      return super.connect((type, error) => {
        emit(type, this.explained(error));
      });
    }

    private explained(error: Error): Error {
      const { reason } = this;
      if (reason === undefined) return error;
      const message = error.message.replace(CLOSED, () => reason.message);
      return message === error.message ? error : new Error(message, { cause: error });
    }
  }
  return Listening as Connector;
}

/** The options for a client of ours that asks sentinels; none for other clients, or if a connector has been given. */
export function sentinelOptions({ sentinels, Connector }: RedisOptions, like?: Redis): RedisOptions {
  if (sentinels == null || Connector !== undefined) return {};
  // A client that is made from one of the application's has the classes of the application's ioredis.
  const present = like && (Reflect.get(like, 'connector') as SentinelConnector | undefined);
  const Base = (present?.constructor ?? SentinelConnector) as typeof SentinelConnector;
  return { Connector: listeningConnector(Base) };
}
