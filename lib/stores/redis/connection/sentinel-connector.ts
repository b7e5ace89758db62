import { SentinelConnector, type Redis, type RedisOptions } from 'ioredis';
import { isPermanent } from './redis-errors.js';
import { type Address, majorityAgainst } from './sentinel-votes.js';

type Connector = NonNullable<RedisOptions['Connector']>;
type Emit = Parameters<SentinelConnector['connect']>[0];
type Sentinel = Partial<Address>;
type Open = (sentinel: Sentinel, options?: RedisOptions) => Redis;
type Watch = () => Promise<void>;
type Resolve = (sentinel: Sentinel) => Promise<Address | null>;
interface Iterator {
  next(): { done: boolean; value?: Sentinel };
  reset(moveCurrentToFirst: boolean): void;
}

/** What ioredis says of a refused connection instead of the reason. */
const CLOSED = /Connection is closed\.$/;

/**
 * Options that ioredis does not pass on to connections to sentinels. A connection that was never made would keep a process
 * alive for 2 s that has shut down. And no message of a failover comes over an idle connection that a firewall has forgotten.
 */
const AS_FOR_THE_MASTER = ['disconnectTimeout', 'keepAlive'] as const;

/** An event of the client: a majority of the sentinels refuses to report failovers, for this reason; or one reports them. */
export const WATCH = 'failoverWatch';

/** The present credentials for sentinels. ioredis would keep those with which a connection was made. */
const credentialsOf = ({ sentinelUsername, sentinelPassword, sentinelTLS }: RedisOptions): RedisOptions => ({
  username: sentinelUsername,
  password: sentinelPassword,
  tls: sentinelTLS,
});

/**
 * The connector of ioredis, with four additions.
 *
 * It listens to the errors of its own connections to sentinels. ioredis has no such listener on the connections that watch
 * for a failover, so each dead sentinel writes a stack to stderr with every connection. Of a sentinel that cannot be reached,
 * ioredis tells only that the connection is closed.
 *
 * It asks for the master each time that such a connection begins to watch. ioredis only waits for the message of the
 * next failover. One that came while no connection watched would never be noticed: a former master that lives on, cut off
 * from the sentinels only, would go on granting locks that the new one grants, too.
 *
 * It watches for no failover over a connection that has been given up before it was made. Nothing would end that watch.
 *
 * It subscribes again over each connection that watches, with the present credentials, and tells if the sentinels refuse.
 * ioredis gives a subscription up when it is refused, without a word.
 * @param origin the client whose credentials for sentinels count
 */
function listeningConnector(Base: typeof SentinelConnector, origin?: Redis): Connector {
  class Listening extends Base {
    private reason: Error | undefined;
    /** The server of the present connection. */
    private address: Address | undefined;
    /** Connections that have begun to watch since the last time that all was compared. */
    private begun = 0;
    private readonly ask: Resolve | undefined;
    private emit: ((type: string, refusal: Error | undefined) => void) | undefined;
    /** How sentinels have answered the wish to hear of a failover over the present connections. */
    private readonly watches = new Map<Sentinel, Error | undefined>();

    constructor(options: RedisOptions) {
      super(options);
      const open: unknown = Reflect.get(this, 'connectToSentinel');
      const resolve: unknown = Reflect.get(this, 'resolve');
      const watch: unknown = Reflect.get(this, 'initFailoverDetector');
      // Internal methods of ioredis. If a version has them under other names, the connector works as without this class.
      if (![open, resolve, watch].every((method) => typeof method === 'function')) return;
      this.ask = (sentinel) => (resolve as Resolve).call(this, sentinel);
      const { role } = options;
      const present = () => credentialsOf(origin?.options ?? options);
      const ours = Object.fromEntries(AS_FOR_THE_MASTER.map((name) => [name, options[name]]));
      Reflect.set(this, 'connectToSentinel', (...[sentinel, others]: Parameters<Open>) => {
        const client = (open as Open).call(this, sentinel, { ...others, ...ours, ...present() });
        const connect = client.connect.bind(client);
        client.connect = (callback) => {
          Object.assign(client.options, present());
          return connect(callback);
        };
        client.on('error', (error) => {
          this.reason = error;
          if (others?.lazyConnect === true && isPermanent(error)) this.watched(sentinel, error);
        });
        client.on('close', () => {
          if (this.watches.get(sentinel) === undefined) this.watches.delete(sentinel);
        });
        // ioredis subscribes again after a reconnect, and handles no rejection if the connection is closed before the answer.
        const subscribe = client.subscribe.bind(client) as (...channels: unknown[]) => Promise<unknown>;
        let isFirst = true;
        const watch = (...channels: unknown[]) => {
          const subscribed = subscribe(...channels);
          subscribed.then(
            () => {
              this.watched(sentinel);
            },
            (error: unknown) => {
              if (isPermanent(error)) this.watched(sentinel, error as Error);
            },
          );
          if (isFirst) client.on('ready', () => void watch(...channels));
          isFirst = false;
          return subscribed;
        };
        Reflect.set(client, 'subscribe', watch);
        // Only the connections that watch are made before they are used.
        if (others?.lazyConnect === true && role !== 'slave') client.on('ready', () => void this.compare());
        return client;
      });
      Reflect.set(this, 'resolve', async (sentinel: Sentinel) => {
        const address = await (resolve as Resolve).call(this, sentinel);
        this.address = address ?? undefined;
        return address;
      });
      Reflect.set(this, 'initFailoverDetector', async () => {
        if (this.connecting) await (watch as Watch).call(this);
      });
    }

    override connect(emit: Emit): ReturnType<SentinelConnector['connect']> {
      this.emit = emit as typeof this.emit;
      this.watches.clear();
      return super.connect((type, error) => {
        emit(type, this.explained(error));
      });
    }

    private watched(sentinel: Sentinel, refusal?: Error): void {
      const { watches } = this;
      watches.set(sentinel, refusal);
      const refusals = [...watches.values()].filter((watch) => watch !== undefined);
      const isRefused = refusals.length === watches.size && 2 * refusals.length > this.sentinels.length;
      // The event has no error if one of them tells.
      if (isRefused || refusal === undefined) this.emit?.(WATCH, refusal);
    }

    /** Compares after each connection that begins to watch, and once for several of them. */
    private async compare(): Promise<void> {
      if (this.begun++ > 0) return;
      for (let compared = 0; compared < this.begun;) {
        compared = this.begun;
        await this.leaveFormerMaster();
      }
      this.begun = 0;
    }

    /** Gives up a connection to another server than the master of a majority of the sentinels. */
    private async leaveFormerMaster(): Promise<void> {
      const { stream, address, ask } = this;
      if (ask === undefined || address === undefined) return;
      const ahead = await majorityAgainst(address, this.sentinels, ask);
      // The present connection may be another one by now.
      if (ahead === undefined || stream !== this.stream) return;
      this.startAt(ahead);
      this.disconnect();
    }

    private get iterator(): Iterator {
      return Reflect.get(this, 'sentinelIterator');
    }

    /** The sentinels of the options, and the sentinels that ioredis has learned of from their answers. */
    private get sentinels(): Sentinel[] {
      return [...(Reflect.get(this.iterator, 'sentinels') as Sentinel[])];
    }

    /** The next connection asks this one first, and not a sentinel that still knows the former master only. */
    private startAt(sentinel: Sentinel): void {
      const { iterator } = this;
      iterator.reset(false);
      for (let next = iterator.next(); !next.done; next = iterator.next()) {
        if (next.value !== sentinel) continue;
        iterator.reset(true);
        return;
      }
      iterator.reset(false);
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
  return { Connector: listeningConnector(Base, like) };
}
