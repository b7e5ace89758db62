import type {
  AcquireAllReply,
  AcquireAllRequest,
  AcquireReply,
  AcquireRequest,
  ConnectionChange,
  HoldState,
  LockStore,
  NodeHealth,
  QueueMessage,
  QueueRequest,
  ReleaseRequest,
  RenewRequest,
  StoredLock,
  StoreHealth,
  StoreWarning,
  Subscription,
} from '../lock-store.js';
import { kindMismatch } from '../kind-mismatch.js';
import { nodeWarnings } from '../preflight.js';
import { overallStatus } from '../overall-status.js';
import type { RedisConnection } from './connection.js';
import type { Argument, Deployment, Listener, Subscriptions } from './deployment.js';
import { FENCE_TTL, keysOf, type LockKeys } from './keys.js';
import { nodeHealth } from './node-health.js';
import {
  LETTERS,
  QUEUE_CHANNEL,
  queueMessage,
  type QueueReply,
  storedLock,
  type InspectReply,
} from './queue-protocol.js';
import { notALock, translate } from './redis-errors.js';
import { Renewals } from './renewals.js';
import type { Replication } from './replication.js';
import { ServerClocks } from './server-clock.js';
import * as scripts from './script.js';

export interface RedisLockStoreOptions {
  readonly connection: Deployment;
  /** Opens what messages come over, when somebody has to wait for the first time. */
  readonly subscriptions: () => Subscriptions;
  readonly keyPrefix: string;
  /** What is risky about the client that was given. */
  readonly clientWarnings: readonly StoreWarning[];
  /** Of what the connection has written. Nothing is waited for without it. */
  readonly replication?: Replication | undefined;
}

/** Locks on one Redis deployment. The plain lock is wire-compatible with Redisson's RLock. */
export class RedisLockStore implements LockStore {
  private readonly connection: Deployment;
  private readonly clocks = new ServerClocks();
  /** The acquisitions under way, by owner. */
  private readonly entering = new Map<string, Set<{ unwanted: boolean }>>();
  private readonly renewals: Renewals;
  private subscriptions: Subscriptions | undefined;

  constructor(private readonly options: RedisLockStoreOptions) {
    this.connection = options.connection;
    this.renewals = new Renewals({
      connection: this.connection,
      keys: (name) => this.keys(name),
      confirmation: (name) => this.confirmation(name),
    });
  }

  acquire(request: AcquireRequest): Promise<AcquireReply> {
    const { name, queue } = request;
    return this.confirmed(name, () =>
      queue === undefined ? this.take(request) : this.enterQueue(request, queue),
    );
  }

  private async take({ name, owner, leaseTime, leastToken }: AcquireRequest): Promise<AcquireReply> {
    const keys = this.keys(name);
    const args = [owner, leaseTime, leastToken ?? 0, FENCE_TTL];
    const reply = await this.enter(owner, scripts.acquire, [keys.lock, keys.fence], args, name);
    if (!Array.isArray(reply)) return { granted: true, fencingToken: Number(reply) };
    const [ttl, holder] = reply as [number | string, string | null];
    return { granted: false, retryAfter: milliseconds(ttl), holder: holder ?? undefined };
  }

  async acquireAll(request: AcquireAllRequest): Promise<AcquireAllReply> {
    const { names, owner, leaseTime, leastToken = 0, turn } = request;
    const keys = names.flatMap((name) => {
      const { lock, fence, turn: reservation } = this.keys(name);
      return [lock, fence, reservation];
    });
    const args = [owner, leaseTime, leastToken, FENCE_TTL, turn?.asker ?? '', turn?.reserveFor ?? 0];
    return await this.confirmed(names[0] ?? '', async () => {
      const reply = await this.enter(owner, scripts.acquireAll, keys, args, names.join(','));
      const [first, ttl, holder] = reply as [number | string, (number | string)?, (string | null)?];
      if (Number(first) > 0) return { granted: true, fencingTokens: (reply as unknown[]).map(Number) };
      const name = names[-Number(first) - 1] ?? '';
      if (ttl === undefined) throw notALock(name);
      return { granted: false, name, retryAfter: milliseconds(ttl), holder: holder ?? undefined };
    });
  }

  placeOf(name: string): string {
    return String(this.connection.groupOf(this.keys(name).lock));
  }

  nodeOf(name: string): string {
    if (!this.connection.isCluster) return this.connection.node;
    return this.connection.nodeOf(this.keys(name).lock)?.node ?? '';
  }

  private async enterQueue(
    { name, owner, leaseTime }: AcquireRequest,
    { kind, mode, capacity, place, beside }: QueueRequest,
  ): Promise<AcquireReply> {
    const keys = this.keys(name);
    const sentAt = performance.now();
    const stands = place === undefined ? 0 : 1;
    const args = [owner, LETTERS[mode], kind, capacity, leaseTime, stands, place?.arrival ?? 0, beside ?? ''];
    const reply = (await this.enter(
      owner,
      scripts.queueAcquire,
      [keys.lock, keys.queue, keys.fence],
      [...args, ...this.queueArguments()],
      name,
    )) as QueueReply;
    const [outcome, second, third, fourth, arrival, holder] = reply;
    if (Number(outcome) < 0)
      throw kindMismatch(name, { kind, capacity }, { kind: String(second), capacity: Number(third) });
    this.clocks.of(third).learn(Number(second), sentAt);
    if (Number(outcome) === 1) return { granted: true, fencingToken: Number(fourth) };
    return {
      granted: false,
      retryAfter: Number(fourth),
      arrival: Number(arrival) > 0 ? Number(arrival) : undefined,
      holder: holder ?? undefined,
    };
  }

  renew(requests: readonly RenewRequest[]): readonly Promise<HoldState>[] {
    return this.renewals.renew(requests);
  }

  async release({ name, owner, fencingToken, keepFor = 0, queue }: ReleaseRequest): Promise<boolean> {
    const keys = this.keys(name);
    const epoch = this.connection.epochOf(keys.lock);
    for (const acquisition of this.entering.get(owner) ?? []) acquisition.unwanted = true;
    const released =
      queue === undefined
        ? await this.run(
            scripts.release,
            [keys.lock, keys.fence],
            [owner, ...this.publishing(keys), fencingToken ?? 0, FENCE_TTL, keepFor],
            name,
          )
        : await this.run(
            scripts.queueRelease,
            [keys.lock, keys.queue, keys.fence],
            [owner, LETTERS[queue.mode], queue.kind, queue.capacity, keepFor, ...this.queueArguments()],
            name,
          );
    // "Not held" after a reconnection may be the answer to a release that the client has sent twice.
    return Number(released) === 1 || this.connection.epochOf(keys.lock) !== epoch;
  }

  async forceRelease(name: string): Promise<boolean> {
    await this.learnSharding(name);
    const keys = this.keys(name);
    const args = [...this.publishing(keys), ...this.queueArguments()];
    const reply = await this.run(scripts.forceRelease, [keys.lock, keys.queue, keys.fence], args, name);
    return Number(reply) === 1;
  }

  async inspect(name: string): Promise<StoredLock | null> {
    await this.learnSharding(name);
    const keys = this.keys(name);
    const [, channel] = this.publishing(keys);
    const count = this.connection.sharded ? 'SHARDNUMSUB' : 'NUMSUB';
    const reply = await this.run(
      scripts.inspect,
      [keys.lock, keys.fence, keys.queue],
      [count, channel],
      name,
    );
    if (reply === null) return null;
    const stored = storedLock(reply as InspectReply);
    if (!this.connection.isCluster || this.connection.sharded) return stored;
    // Each node counts those who listen at itself.
    return { ...stored, listeners: await this.listenersEverywhere(channel) };
  }

  async listen(client: string, onMessage: (message: QueueMessage) => void): Promise<Subscription> {
    return await this.hear(QUEUE_CHANNEL + client, undefined, false, (text) => {
      const message: QueueMessage = text === undefined ? { type: 'missed' } : queueMessage(text, this.clocks);
      // A grant was written over the connection of whoever released: only what its owner asks for can be waited for.
      const unconfirmed = message.type === 'granted' && this.options.replication !== undefined;
      onMessage(unconfirmed ? { type: 'missed', owner: message.owner } : message);
    });
  }

  async subscribe(name: string, onWake: () => void): Promise<Subscription> {
    await this.learnSharding(name);
    const [, channel] = this.publishing(this.keys(name));
    return await this.hear(channel, name, this.connection.sharded, onWake);
  }

  async health(): Promise<StoreHealth> {
    const nodes = await this.nodeHealths();
    const warnings = [...this.options.clientWarnings, ...nodeWarnings(nodes)];
    return { status: overallStatus(nodes, 1), nodes, warnings };
  }

  onConnectionChange(listener: (change: ConnectionChange) => void): void {
    this.connection.onChange(listener);
  }

  async close(): Promise<void> {
    await Promise.all([this.subscriptions?.close(), this.connection.close()]);
  }

  private async nodeHealths(): Promise<readonly NodeHealth[]> {
    try {
      const nodes = await this.connection.nodes();
      return await Promise.all(nodes.map((node) => nodeHealth(node, this.subscriptions)));
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      return [{ node: this.connection.node, status: 'down', latency: undefined, error: reason }];
    }
  }

  /** A grant counts when replicas have it, if they are to have it. */
  private confirmed<R extends { readonly granted: boolean }>(
    name: string,
    ask: () => Promise<R>,
  ): Promise<R> {
    return this.options.replication === undefined ? ask() : this.askAndConfirm(name, ask);
  }

  private async askAndConfirm<R extends { readonly granted: boolean }>(
    name: string,
    ask: () => Promise<R>,
  ): Promise<R> {
    await this.learnSharding(name); // and with it which node has the lock
    const confirm = this.confirmation(name);
    const reply = await ask();
    if (reply.granted) await confirm();
    return reply;
  }

  /** To be made before something is written, and called after it: waits until replicas have that. */
  private confirmation(name: string): () => Promise<void> {
    const { replication } = this.options;
    if (replication === undefined) return () => Promise.resolve();
    const key = this.keys(name).lock;
    const node = this.connection.nodeOf(key);
    const epoch = this.connection.epochOf(key);
    return async () => {
      try {
        if (node !== undefined) await replication.confirm(node);
        // Another connection has written nothing, and so has nothing to wait for.
        if (
          node !== this.connection.nodeOf(key) ||
          epoch !== this.connection.epochOf(key) ||
          node === undefined
        ) {
          throw new Error('the connection was lost meanwhile');
        }
      } catch (error) {
        throw translate(error, name);
      }
    };
  }

  /** An acquisition, which a release of the same owner takes back while it is still under way. */
  private async enter(
    owner: string,
    script: scripts.Script,
    keys: readonly string[],
    args: readonly Argument[],
    name: string,
  ): Promise<unknown> {
    const acquisition = { unwanted: false };
    const entering = this.entering.get(owner) ?? new Set();
    this.entering.set(owner, entering.add(acquisition));
    try {
      return await this.connection.run(script, keys, args, acquisition);
    } catch (error) {
      throw translate(error, name);
    } finally {
      entering.delete(acquisition);
      if (entering.size === 0) this.entering.delete(owner);
    }
  }

  private keys(name: string): LockKeys {
    return keysOf(name, this.options.keyPrefix, this.connection.keyPrefix);
  }

  /** How a release is told. */
  private publishing({ channel, shardChannel }: LockKeys): [command: string, channel: string] {
    return this.connection.sharded ? ['SPUBLISH', shardChannel] : ['PUBLISH', channel];
  }

  /** What the scripts of the queue end with. */
  private queueArguments(): Argument[] {
    return [QUEUE_CHANNEL, FENCE_TTL, this.connection.isCluster ? 'cluster' : ''];
  }

  private async learnSharding(name: string): Promise<void> {
    try {
      await this.connection.learnSharding();
    } catch (error) {
      throw translate(error, name);
    }
  }

  private async hear(
    channel: string,
    name: string | undefined,
    sharded: boolean,
    listener: Listener,
  ): Promise<Subscription> {
    this.subscriptions ??= this.options.subscriptions();
    try {
      return await this.subscriptions.subscribe(channel, listener, sharded);
    } catch (error) {
      throw translate(error, name);
    }
  }

  private async listenersEverywhere(channel: string): Promise<number> {
    const count = async (node: RedisConnection) => {
      const reply = await node.send((client) => client.call('PUBSUB', 'NUMSUB', channel));
      return Number((reply as (number | string)[])[1]);
    };
    const counts = await Promise.allSettled((await this.connection.nodes()).map(count));
    return counts.reduce((sum, node) => sum + (node.status === 'fulfilled' ? node.value : 0), 0);
  }

  private async run(
    script: scripts.Script,
    keys: readonly string[],
    args: readonly Argument[],
    name: string | undefined,
  ): Promise<unknown> {
    try {
      return await this.connection.run(script, keys, args);
    } catch (error) {
      throw translate(error, name);
    }
  }
}

/** A PTTL as a time to wait: a key without a TTL has no end. */
function milliseconds(ttl: number | string): number {
  return Number(ttl) < 0 ? Infinity : Number(ttl);
}
