import { SentinelConnector, type Redis, type RedisOptions } from 'ioredis';

type Connector = NonNullable<RedisOptions['Connector']>;
type Emit = Parameters<SentinelConnector['connect']>[0];
type Open = (endpoint: { host?: string; port?: number }, options?: unknown) => Redis;

/** What ioredis says of a connection that has been refused, in place of the reason. */
const CLOSED = /Connection is closed\.$/;

/**
 * The connector of ioredis, which hears what its own connections to sentinels have to say. ioredis listens to no errors
 * of those that it watches for a failover, so that each dead sentinel writes a stack to stderr with every connection; and
 * of a sentinel that cannot be reached it tells only that the connection is closed.
 */
function listeningConnector(Base: typeof SentinelConnector): Connector {
  class Listening extends Base {
    private reason: Error | undefined;

    constructor(options: RedisOptions) {
      super(options);
      const open: unknown = Reflect.get(this, 'connectToSentinel');
      // An inside of ioredis: where a version has it under another name, things are as before.
      if (typeof open !== 'function') return;
      Reflect.set(this, 'connectToSentinel', (...details: Parameters<Open>) => {
        const client = (open as Open).apply(this, details);
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

/** What a client of ours is to be given that asks sentinels; nothing for others, or where it has been given one. */
export function sentinelOptions({ sentinels, Connector }: RedisOptions, like?: Redis): RedisOptions {
  if (sentinels == null || Connector !== undefined) return {};
  // A client that is made after one of the application's has the classes of the application's ioredis.
  const present = like && (Reflect.get(like, 'connector') as SentinelConnector | undefined);
  const Base = (present?.constructor ?? SentinelConnector) as typeof SentinelConnector;
  return { Connector: listeningConnector(Base) };
}
