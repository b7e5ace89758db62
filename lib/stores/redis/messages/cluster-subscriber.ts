import {
  clearRepeatingTimer,
  idle,
  monotonicTime,
  random,
  setRepeatingTimer,
  sleep,
} from '../../../runtime/runtime.js';
import type { Subscription } from '../../../store/lock-store.js';
import { listen } from '../connection/client-events.js';
import type { ClusterConnection } from '../connection/cluster-connection.js';
import { isOpen } from '../connection/connection-stage.js';
import { PAUSE } from '../connection/node-connections.js';
import type { ServerConnection } from '../connection/connection.js';
import type { Listener, Subscriptions } from '../connection/deployment.js';
import { isPermanent, NotConnected, replyCode } from '../connection/redis-errors.js';
import { hashTag, slotOf } from '../connection/slots.js';
import { HEARTBEAT, Subscriber } from './subscriber.js';

interface Post {
  readonly subscriber: Subscriber;
  readonly node: string;
  readonly sharded: boolean;
}

/**
 * Channel subscriptions on a cluster. The subscriptions of one lock are at the node that has its slot; the scripts count
 * them there. Other subscriptions are at any one master. A subscription does not move: when its slot goes to another node, or
 * its node goes away or is no master any more, it ends. Its listeners are woken, and subscribe again at the right node.
 */
export class ClusterSubscriber implements Subscriptions {
  /** ioredis treats the end of the last sharded subscription as the end of all, so each kind has its own connections. */
  private readonly posts = new Map<string, Post>();
  /** The posts that could not be opened, because the server does not let this client in. */
  private readonly refused = new Map<string, Error>();
  private looks: NodeJS.Timeout | undefined;
  private closed = false;
  private readonly stopListening: () => void;

  constructor(
    private readonly cluster: ClusterConnection,
    /** Opens another connection to the same node. */
    private readonly connect: (node: ServerConnection) => ServerConnection,
    private readonly commandTimeout: number,
    /** ms between looks at the slots while there are subscriptions; 0: none. Commands find a failover out by themselves. */
    private readonly lookInterval = HEARTBEAT,
  ) {
    this.stopListening = listen(cluster.client, { refresh: this.onRefresh });
  }

  async subscribe(channel: string, listener: Listener, sharded = false): Promise<Subscription> {
    const until = monotonicTime() + this.commandTimeout;
    for (;;) {
      const atOwner = sharded || hashTag(channel) !== undefined;
      const { subscriber } = atOwner ? await this.postOf(channel, sharded) : await this.anyPost();
      try {
        return await subscriber.subscribe(channel, listener);
      } catch (error) {
        if (replyCode(error) !== 'MOVED' || monotonicTime() >= until) throw error;
        this.cluster.look();
        await sleep(PAUSE);
      }
    }
  }

  async obstacle(): Promise<unknown> {
    await this.tryRefused();
    const posts = [...this.posts];
    const found = await Promise.all(posts.map(([, { subscriber }]) => subscriber.obstacle()));
    // The listeners of a connection that has ended meanwhile subscribe again at the right node.
    const obstacles = posts.flatMap(([name, post], n) => (this.posts.get(name) === post ? [found[n]] : []));
    return [...obstacles, ...this.refused.values()].find((obstacle) => obstacle !== undefined);
  }

  async close(): Promise<void> {
    this.closed = true;
    this.stopListening();
    clearRepeatingTimer(this.looks);
    const posts = [...this.posts.values()];
    this.posts.clear();
    await Promise.all(posts.map(({ subscriber }) => subscriber.close()));
  }

  /** Connects again where that was refused. Callers that wait do the same, but there may be none. */
  private async tryRefused(): Promise<void> {
    if (this.refused.size === 0 || this.closed) return;
    const nodes = await this.cluster.nodes().catch(() => []);
    for (const name of this.refused.keys()) {
      const owner = nodes.find(({ node }) => [nameOf(node, true), nameOf(node, false)].includes(name));
      if (owner === undefined) this.refused.delete(name);
      else this.postAt(owner, name === nameOf(owner.node, true));
    }
  }

  private async postOf(channel: string, sharded: boolean): Promise<Post> {
    await this.cluster.ready();
    const owner = this.cluster.ownerOf(slotOf(channel));
    if (owner === undefined) {
      this.cluster.look();
      throw new NotConnected('no node has the slot', undefined);
    }
    return this.postAt(owner, sharded);
  }

  private async anyPost(): Promise<Post> {
    for (const post of this.posts.values())
      if (!post.sharded && this.cluster.isMaster(post.node)) return post;
    const nodes = await this.cluster.nodes();
    const connected = nodes.filter(({ client }) => client.status === 'ready');
    // The processes of an application spread over the nodes.
    const choice = connected.length > 0 ? connected : nodes;
    const node = choice[Math.floor(random() * choice.length)];
    if (node === undefined) throw new NotConnected('no node', undefined);
    return this.postAt(node, false);
  }

  private postAt(owner: ServerConnection, sharded: boolean): Post {
    // A client of the application may be connected only after `close`, and nothing would close a connection that is opened now.
    if (this.closed) throw new NotConnected('closed', undefined);
    const name = nameOf(owner.node, sharded);
    let post = this.posts.get(name);
    if (post === undefined) {
      const connection = this.connect(owner);
      const { client } = connection;
      const opened = { subscriber: new Subscriber(connection, sharded), node: owner.node, sharded };
      // The server ends the subscriptions of a slot that moves away. ioredis 6 reports this by an event, ioredis 5 by an
      // error, because no command has asked for it. Neither says which subscriptions have ended, so all of them begin again.
      client.on('moved', () => {
        client.disconnect();
      });
      client.on('error', (error: Error) => {
        if (error.message.startsWith('Command queue state error')) client.disconnect();
      });
      client.once('ready', () => {
        // ioredis 5 becomes ready although the password has been refused.
        if (isOpen(client)) this.refused.delete(name);
      });
      client.once('end', () => {
        const reason = connection.outage();
        if (isPermanent(reason)) this.refused.set(name, reason);
        if (this.posts.get(name) === opened) this.posts.delete(name);
        void opened.subscriber.close();
        this.cluster.look();
      });
      post = opened;
      this.posts.set(name, post);
      if (this.lookInterval > 0) this.looks ??= idle(setRepeatingTimer(this.look, this.lookInterval));
    }
    return post;
  }

  private readonly look = () => {
    if ([...this.posts.values()].some(({ subscriber }) => subscriber.used)) this.cluster.look();
  };

  /** The client has looked up the slots. */
  private readonly onRefresh = () => {
    for (const [name, { subscriber, node, sharded }] of this.posts) {
      // Messages arrive at a replica too, but only the masters are asked for subscribers.
      if (!this.cluster.isMaster(node)) {
        this.posts.delete(name);
        subscriber.keep(() => false);
        void subscriber.close();
        continue;
      }
      subscriber.keep((channel) => {
        const isBound = sharded || hashTag(channel) !== undefined;
        return !isBound || this.cluster.ownerOf(slotOf(channel))?.node === node;
      });
    }
  };
}

const nameOf = (node: string, sharded: boolean): string => `${node} ${String(sharded)}`;
