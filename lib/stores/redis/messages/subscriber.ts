import type { Redis } from 'ioredis';
import type { Subscription } from '../../../store/lock-store.js';
import type { ServerConnection } from '../connection/connection.js';
import type { Listener, Server, Subscriptions } from '../connection/deployment.js';
import { QUEUE_CHANNEL } from './queue-protocol.js';
import { subscribersAt } from './subscribers.js';
import { isPermanent, isWithheld, replyCode } from '../connection/redis-errors.js';
import { ReplicaPauses } from '../connection/replica-pauses.js';
import {
  clearRepeatingTimer,
  clearTimer,
  idle,
  setRepeatingTimer,
  setTimer,
} from '../../../runtime/runtime.js';

/** How long an unused channel stays subscribed, so that a busy lock does not subscribe at every wait. */
const LINGER = 1_000;
/** How often an idle connection is tested; a dead one would never deliver a message. */
export const HEARTBEAT = 5_000;

class Elsewhere extends Error {
  constructor() {
    super('their connection leads to another server than that of the commands');
    this.name = 'Elsewhere';
  }
}

interface Channel {
  readonly name: string;
  readonly listeners: Set<Listener>;
  /** The server has confirmed the subscription, and its connection still exists. */
  active: boolean;
  confirmation: Promise<void> | undefined;
  linger: NodeJS.Timeout | undefined;
}

/**
 * Channel subscriptions of one process, over a connection of their own. Each channel is subscribed once for all its
 * listeners. When the connection drops or comes back, all listeners are woken: messages may have been missed.
 */
export class Subscriber implements Subscriptions {
  private readonly channels = new Map<string, Channel>();
  private heartbeat: NodeJS.Timeout | undefined;
  /** The user may not subscribe: the last subscription was refused for good. */
  private refusal: Error | undefined;
  /** The generations of this connection and of that for commands that are known to lead to one server. */
  private proven: string | undefined;
  private isElsewhere = false;
  private isReconnected = false;
  private readonly pauses = new ReplicaPauses();

  constructor(
    private readonly connection: ServerConnection,
    /** Subscribes to messages that go only to the node that has the channel's slot. */
    private readonly sharded = false,
    /** The connection for commands, unless it cannot lead to another server. */
    private readonly commands?: Server,
  ) {
    const { client } = connection;
    client.on(sharded ? 'smessage' : 'message', (channel: string, message: string) => {
      this.wake(this.channels.get(channel), message);
    });
    client.on('close', () => {
      this.isReconnected = true;
      this.isElsewhere = false;
      for (const channel of this.channels.values()) this.deactivate(channel);
    });
    client.on('ready', () => {
      for (const channel of this.channels.values()) void this.restore(channel);
    });
  }

  async subscribe(name: string, listener: Listener): Promise<Subscription> {
    const channel = this.open(name);
    channel.listeners.add(listener);
    const close = () => {
      if (channel.listeners.delete(listener) && channel.listeners.size === 0) this.leave(channel);
    };
    try {
      if (!channel.active) await this.confirm(channel);
    } catch (error) {
      close();
      throw error;
    }
    return {
      get active() {
        return channel.active;
      },
      close,
    };
  }

  async obstacle(): Promise<unknown> {
    const { connection } = this;
    const generation = connection.generationOf();
    const ping = () => connection.send((client) => client.ping());
    try {
      // The connection may be given up meanwhile, because that for commands has just been replaced.
      await ping().catch((error: unknown) => {
        if (connection.generationOf() === generation) throw error;
        return ping();
      });
    } catch (error) {
      // A refusal is an answer, too.
      if (!isWithheld(error)) return isPermanent(connection.outage()) ? connection.outage() : error;
    }
    return this.refusal ?? (this.isElsewhere && this.used ? new Elsewhere() : undefined);
  }

  get used(): boolean {
    return this.channels.size > 0;
  }

  /** Gives up the channels that do not belong to this node any more. Their listeners subscribe at another node. */
  keep(belongs: (channel: string) => boolean): void {
    for (const channel of [...this.channels.values()]) {
      if (belongs(channel.name)) continue;
      this.channels.delete(channel.name);
      if (this.connection.client.status === 'ready') this.unsubscribe(channel.name);
      this.deactivate(channel);
    }
  }

  async close(): Promise<void> {
    clearRepeatingTimer(this.heartbeat);
    for (const channel of this.channels.values()) clearTimer(channel.linger);
    this.channels.clear();
    await this.connection.close();
  }

  private open(name: string): Channel {
    let channel = this.channels.get(name);
    if (channel === undefined) {
      channel = { name, listeners: new Set(), active: false, confirmation: undefined, linger: undefined };
      this.channels.set(name, channel);
      const beat = () => {
        this.connection.send((client) => client.ping()).catch(() => undefined);
        for (const channel of this.channels.values())
          void (channel.active ? this.prove(channel) : this.restore(channel));
      };
      this.heartbeat ??= idle(setRepeatingTimer(beat, HEARTBEAT));
    }
    clearTimer(channel.linger);
    return channel;
  }

  /** Subscribes, once for all callers that ask meanwhile. */
  private confirm(channel: Channel): Promise<void> {
    channel.confirmation ??= this.connection
      .send((client: Redis) =>
        this.sharded ? client.ssubscribe(channel.name) : client.subscribe(channel.name),
      )
      .then(() => {
        this.refusal = undefined;
        // The connection may have dropped since the reply; its `close` event has come by then. And the channel may have been
        // given up since the request: nothing reports on it any more.
        const kept = this.channels.get(channel.name) === channel;
        channel.active = kept && this.connection.client.status === 'ready';
        if (this.isReconnected) void this.prove(channel);
      })
      .catch((error: unknown) => {
        this.refusal = replyCode(error) === 'NOPERM' ? (error as Error) : undefined;
        throw error;
      })
      .finally(() => {
        channel.confirmation = undefined;
      });
    return channel.confirmation;
  }

  /**
   * A name that has just moved may lead one connection to the former server and another one to the new server, as caches of
   * addresses differ for a while. The server of the commands would take this process for dead. So once per pair of
   * connections it is asked whether it counts the subscription to a channel that no other process has: at once after a
   * reconnect, and with the first heartbeat of the first connection, which most processes of a short life do not reach.
   */
  private async prove(channel: Channel): Promise<void> {
    const { connection, commands } = this;
    if (commands === undefined || !channel.active || !channel.name.startsWith(QUEUE_CHANNEL)) return;
    const present = () => `${String(connection.generationOf())} ${String(commands.generationOf())}`;
    const asked = present();
    if (this.proven === asked) return;
    this.proven = asked;
    const [count] = await subscribersAt(commands, [channel.name]).catch((error: unknown) => {
      // The next heartbeat asks again, unless the user may not ask, or the server does not know the question.
      const isFinal = isWithheld(error) || replyCode(error) === 'ERR';
      if (!isFinal && this.proven === asked) this.proven = undefined;
      return [];
    });
    if (present() !== asked || this.channels.get(channel.name) !== channel) return;
    this.isElsewhere = count === 0;
    if (count !== 0) return;
    // The next heartbeat asks again.
    this.proven = undefined;
    if (this.pauses.mayLeave()) connection.renew();
  }

  /** A subscription that fails is tried again with the next heartbeat or connection. The listeners poll meanwhile. */
  private async restore(channel: Channel): Promise<void> {
    // It may be under way on the former connection.
    await channel.confirmation?.catch(() => undefined);
    if (channel.active || this.channels.get(channel.name) !== channel) return;
    await this.confirm(channel).then(
      () => {
        this.wake(channel);
      },
      () => undefined,
    );
  }

  private deactivate(channel: Channel): void {
    if (!channel.active) return;
    channel.active = false;
    this.wake(channel);
  }

  private wake(channel: Channel | undefined, message?: string): void {
    for (const listener of channel?.listeners ?? []) listener(message);
  }

  private leave(channel: Channel): void {
    clearTimer(channel.linger);
    const drop = () => {
      // The channel was dropped meanwhile, and perhaps opened again by another caller.
      if (this.channels.get(channel.name) !== channel) return;
      this.channels.delete(channel.name);
      if (this.channels.size === 0) {
        clearRepeatingTimer(this.heartbeat);
        this.heartbeat = undefined;
      }
      if (this.connection.client.status === 'ready') {
        this.unsubscribe(channel.name);
      }
    };
    channel.linger = idle(setTimer(drop, LINGER));
  }

  private unsubscribe(name: string): void {
    const { client } = this.connection;
    (this.sharded ? client.sunsubscribe(name) : client.unsubscribe(name)).catch(() => undefined);
  }
}
