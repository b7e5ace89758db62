import type {
  AcquireReply,
  HandOverReply,
  HoldState,
  LockStore,
  ReleaseReply,
  StoredLock,
  StoreQueues,
  Subscription,
} from '../../../../lib/store/lock-store.js';
import type { QueueMessage } from '../../../../lib/store/queue-messages.js';
import type { ConnectionChange, StoreHealth } from '../../../../lib/store/store-health.js';
import type { Actor } from '../world/actor.js';
import type { Link } from '../world/link.js';
import type { Package } from '../world/program.js';
import { Connection, type Failure } from './connection.js';
import type { MemoryServer, Method } from './memory-server.js';

interface Channel {
  readonly key: string;
  readonly listeners: Set<(message: QueueMessage | undefined) => void>;
  active: boolean;
  confirmation: Promise<void> | undefined;
}

/** What the store of one process sends to a memory server, and hears from it, over a network. */
export class RemoteStore implements LockStore {
  readonly labels: NonNullable<LockStore['labels']>;
  readonly waits: NonNullable<LockStore['waits']>;
  readonly periods: LockStore['periods'];
  readonly listing: NonNullable<LockStore['listing']>;
  readonly queues: StoreQueues;
  private readonly commands: Connection;
  private readonly messages: Connection;
  private readonly channels = new Map<string, Channel>();

  constructor(
    private readonly actor: Actor,
    private readonly link: Link,
    private readonly server: MemoryServer,
    private readonly errors: Pick<Package, 'LockUnavailableError'>,
    timeout: number,
  ) {
    this.commands = new Connection(actor, link, server, timeout);
    this.messages = new Connection(actor, link, server, timeout);
    this.messages.onLost = () => {
      for (const channel of this.channels.values()) this.deactivate(channel);
    };
    this.messages.onReady = () => {
      for (const channel of this.channels.values())
        if (channel.confirmation === undefined) this.restore(channel);
    };
    const ask = <T>(method: Method, ...args: readonly unknown[]) => this.ask<T>(method, undefined, ...args);
    this.labels = {
      keep: (...args) => ask('labels.keep', ...args),
      find: (client) => ask('labels.find', client),
    };
    this.waits = {
      keep: (...args) => ask('waits.keep', ...args),
      find: (client) => ask('waits.find', client),
      forget: (client) => ask('waits.forget', client),
    };
    this.periods = {
      remember: (request) => ask('periods.remember', { ...request }),
      recall: (name) => ask('periods.recall', name),
    };
    this.listing = { names: (request) => ask('listing.names', { ...request }) };
    this.queues = {
      subscribe: (client, onMessage) =>
        this.subscribe('subscribe', client, (message) => {
          onMessage(message === undefined ? { type: 'missed' } : this.inOwnTime(message));
        }),
      handOver: (request, next) =>
        this.ask<HandOverReply>(
          'handOver',
          request.name,
          { ...request },
          { owner: next.owner, leaseTime: next.leaseTime },
        ),
    };
  }

  get node(): string {
    return this.server.name;
  }

  get generation(): number {
    return this.commands.generation;
  }

  get isDown(): boolean {
    return this.commands.status === 'down';
  }

  outage(name: string | undefined): Error {
    const cause = Object.assign(new Error('not connected'), { name: 'NotConnected' });
    return new this.errors.LockUnavailableError(name, { cause, effect: 'refused' });
  }

  acquire: LockStore['acquire'] = (request) =>
    this.ask<AcquireReply>('acquire', request.name, {
      ...request,
      ...(request.queue === undefined ? {} : { queue: { ...request.queue } }),
    });

  acquireAll: LockStore['acquireAll'] = (request) =>
    this.ask('acquireAll', request.names.join(','), { ...request, names: [...request.names] });

  locationOf = (): string => '';

  outageOf = (name: string) =>
    this.isDown ? (this.outage(name) as ReturnType<NonNullable<LockStore['outageOf']>>) : undefined;

  renew: LockStore['renew'] = (requests) => {
    const answer = this.ask<readonly HoldState[]>(
      'renew',
      undefined,
      requests.map((request) => ({ ...request })),
    );
    answer.catch(() => undefined);
    return requests.map(async (_, index) => (await answer)[index] ?? 'deleted');
  };

  release: LockStore['release'] = (request) =>
    this.ask<ReleaseReply>('release', request.name, { ...request });

  transfer: LockStore['transfer'] = (request) => this.ask('transfer', request.name, { ...request });

  inspect: LockStore['inspect'] = (name) => this.ask<StoredLock | null>('inspect', name, name);

  forceRelease: LockStore['forceRelease'] = (name, mode) => this.ask('forceRelease', name, name, mode);

  subscribeToReleases: LockStore['subscribeToReleases'] = (name, onWake) =>
    this.subscribe('listen', name, () => {
      onWake();
    });

  health = async (): Promise<StoreHealth> => {
    const node = { node: this.node, latency: 0, error: undefined };
    try {
      await this.ask('ping', undefined);
      return { status: 'up', nodes: [{ ...node, status: 'up' }], warnings: [] };
    } catch {
      return { status: 'down', nodes: [{ ...node, status: 'down', latency: undefined }], warnings: [] };
    }
  };

  onConnectionChange(listener: (change: ConnectionChange) => void): void {
    const { onReady, onLost } = this.commands;
    this.commands.onReady = (first) => {
      onReady(first);
      listener({ node: this.node, connected: true, first });
    };
    this.commands.onLost = () => {
      onLost();
      listener({ node: this.node, connected: false });
    };
  }

  close(): Promise<void> {
    this.commands.close();
    this.messages.close();
    return Promise.resolve();
  }

  async ask<T>(method: Method, name: string | undefined, ...args: readonly unknown[]): Promise<T> {
    try {
      return (await this.commands.call(method, args)) as T;
    } catch (error) {
      throw this.translated(error, name);
    }
  }

  private translated(error: unknown, name: string | undefined): unknown {
    const { error: cause, effect } = error as Partial<Failure>;
    return effect === undefined ? error : new this.errors.LockUnavailableError(name, { cause, effect });
  }

  /** The moment of a grant, from the server's clock to that of this process. */
  private inOwnTime(message: QueueMessage): QueueMessage {
    if (message.type !== 'granted') return message;
    const moment = this.server.actor?.momentOf(message.grantedAt) ?? 0;
    return { ...message, grantedAt: this.actor.monotonic(moment) };
  }

  private async subscribe(
    method: 'subscribe' | 'listen',
    name: string,
    listener: (message: QueueMessage | undefined) => void,
  ): Promise<Subscription> {
    const key = `${method} ${name}`;
    const channel = this.channels.get(key) ?? {
      key,
      listeners: new Set(),
      active: false,
      confirmation: undefined,
    };
    this.channels.set(key, channel);
    channel.listeners.add(listener);
    const close = () => {
      if (!channel.listeners.delete(listener) || channel.listeners.size > 0) return;
      this.channels.delete(key);
      if (this.messages.status === 'ready') this.messages.call('unsubscribe', [key]).catch(() => undefined);
    };
    try {
      if (!channel.active) await this.confirm(channel);
    } catch (error) {
      close();
      throw this.translated(error, undefined);
    }
    return {
      get active() {
        return channel.active;
      },
      close,
    };
  }

  private confirm(channel: Channel): Promise<void> {
    const [method = '', ...rest] = channel.key.split(' ');
    const { generation } = this.messages;
    channel.confirmation ??= this.messages
      .call(method as Method, [rest.join(' ')], {
        link: this.link,
        deliver: (message) => {
          if (this.channels.get(channel.key) === channel) for (const tell of channel.listeners) tell(message);
        },
      })
      .then(() => {
        channel.active =
          this.messages.generation === generation &&
          this.messages.status === 'ready' &&
          this.channels.get(channel.key) === channel;
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
      () => undefined,
    );
  }

  private deactivate(channel: Channel): void {
    if (!channel.active) return;
    channel.active = false;
    this.wake(channel);
  }

  /** Messages may have been missed. */
  private wake(channel: Channel): void {
    for (const tell of channel.listeners) tell(undefined);
  }
}
