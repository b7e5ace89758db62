import type { Redis } from 'ioredis';
import type { Subscription } from '../../../store/lock-store.js';
import type { ServerConnection } from '../connection/connection.js';
import type { Listener, Subscriptions } from '../connection/deployment.js';
import { isPermanent, isWithheld, replyCode } from '../connection/redis-errors.js';
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

  constructor(
    private readonly connection: ServerConnection,
    /** Subscribes to messages that go only to the node that has the channel's slot. */
    private readonly sharded = false,
  ) {
    const { client } = connection;
    client.on(sharded ? 'smessage' : 'message', (channel: string, message: string) => {
      this.wake(this.channels.get(channel), message);
    });
    client.on('close', () => {
      for (const channel of this.channels.values()) this.deactivate(channel);
    });
    client.on('ready', () => {
      for (const channel of this.channels.values()) {
        // A caller that is about to subscribe for the first time tries again anyway.
        if (channel.confirmation === undefined) this.restore(channel);
      }
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
    return this.refusal;
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

  private restore(channel: Channel): void {
    this.confirm(channel).then(
      () => {
        this.wake(channel);
      },
      () => undefined, // the listeners poll until the next connection
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
