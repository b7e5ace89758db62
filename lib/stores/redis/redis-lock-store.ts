import type {
  AcquireAllReply,
  AcquireAllRequest,
  AcquireReply,
  AcquireRequest,
  HandOverReply,
  HoldState,
  LockStore,
  NextOwner,
  QueueRequest,
  QueueTerms,
  ReleaseReply,
  ReleaseRequest,
  RenewRequest,
  StoredLock,
  StoreQueues,
  Subscription,
} from '../../port/lock-store.js';
import type { QueueMessage } from '../../port/queue-messages.js';
import type {
  ConnectionChange,
  HealthDepth,
  NodeHealth,
  StoreHealth,
  StoreWarning,
} from '../../port/store-health.js';
import { isLockKindMismatchError, LockUnavailableError } from '../../lock.errors.js';
import { kindMismatch, PLAIN } from '../../port/kind-mismatch.js';
import { nodeWarnings } from '../../port/node-warnings.js';
import { overallStatus } from '../../port/overall-status.js';
import type { AcquisitionGuard, Argument, Command } from './command.js';
import type { Deployment, Listener, Server, Subscriptions } from './deployment.js';
import { FENCE_TTL, LockKeys } from './keys.js';
import { nodeHealth } from './node-health.js';
import { LETTERS, QUEUE_CHANNEL, queueMessage } from './queue-protocol.js';
import { notALock, ofSingleServer, NODE_OF_CLUSTER, reasonOf, translate } from './redis-errors.js';
import { Renewals } from './renewals.js';
import {
  codeOf,
  countOf,
  handOverReply,
  inspectReply,
  plainGroupReply,
  plainReply,
  type Queued,
  queueReply,
  releaseReply,
  retireReply,
} from './replies.js';
import type { Replication } from './replication.js';
import { ServerClocks } from './server-clock.js';
import * as scripts from './script.js';
import { Trial } from './trial.js';
import { now } from '../../lock.clock.js';

export interface RedisLockStoreOptions {
  readonly connection: Deployment;
  /** Opens the connections for messages, when a caller has to wait or has held a lock for a second, for the first time. */
  readonly subscriptions: () => Subscriptions;
  readonly keyPrefix: string;
  /** The risky settings of the client that was given. */
  readonly clientWarnings: readonly StoreWarning[];
  /** Confirms what the connection has written. Without it, the store waits for no replica. */
  readonly replication?: Replication | undefined;
}

/** Locks on one Redis deployment. The plain lock is wire-compatible with Redisson's RLock. */
export class RedisLockStore implements LockStore {
  private readonly connection: Deployment;
  private readonly clocks = new ServerClocks();
  /** The acquisitions under way, by owner. */
  private readonly entering = new Map<string, { unwanted: boolean }[]>();
  private readonly renewals: Renewals;
  private readonly trial: Trial;
  readonly queues: StoreQueues;
  private subscriptions: Subscriptions | undefined;

  constructor(private readonly options: RedisLockStoreOptions) {
    this.connection = options.connection;
    const confirms = options.replication !== undefined;
    this.queues = {
      subscribe: (client, onMessage) => this.subscribeToQueue(client, onMessage),
      // Only the owner of a grant can wait for the replicas that have to confirm it.
      handOver: confirms ? undefined : (request, next) => this.passOn(request, next),
    };
    this.renewals = new Renewals({
      connection: this.connection,
      keys: (name) => this.keys(name),
      confirmation: (name) => this.confirmation(name),
    });
    this.trial = new Trial({
      connection: this.connection,
      keys: (name) => this.keys(name),
      publishing: (keys) => this.publishing(keys),
      replication: options.replication,
    });
  }

  acquire(request: AcquireRequest): Promise<AcquireReply> {
    const { name, queue } = request;
    return this.confirmed(name, () =>
      queue === undefined || queue.kind === 'lock' ? this.take(request) : this.enterQueue(request, queue),
    );
  }

  private take({ name, owner, leaseTime, leastToken, queue }: AcquireRequest): Promise<AcquireReply> {
    const keys = this.keys(name);
    const args: Argument[] = [owner, leaseTime, leastToken ?? 0, FENCE_TTL];
    // An argument that is left out at the end costs client and server nothing.
    if (queue?.entry !== undefined) args.push(queue.entry.arrival ?? 0, this.clusterArgument);
    else if (this.connection.isCluster) args.push('', this.clusterArgument);
    const command = { keys: queue === undefined ? [keys.lock, keys.fence] : keys.queued, args };
    const read = this.readingClock(plainReply);
    return this.enter(owner, name, (acquisition) =>
      this.retiring(scripts.acquire, command, [name], read, acquisition),
    );
  }

  async acquireAll(request: AcquireAllRequest): Promise<AcquireAllReply> {
    const { names, owner, leaseTime, leastToken = 0 } = request;
    const keys = names.flatMap((name) => {
      const { lock, fence } = this.keys(name);
      return [lock, fence];
    });
    const args = [owner, leaseTime, leastToken, FENCE_TTL];
    const read = (reply: unknown) => plainGroupReply(reply, names.length);
    return await this.confirmed(names[0] ?? '', async () => {
      const reply = await this.enter(owner, names.join(','), (acquisition) =>
        this.retiring(scripts.acquireAll, { keys, args }, names, read, acquisition),
      );
      if ('notALock' in reply) throw notALock(names[reply.notALock] ?? '');
      if (reply.granted) return reply;
      const { index, ...refusal } = reply;
      return { ...refusal, name: names[index] ?? '' };
    });
  }

  locationOf(name: string): string {
    return String(this.connection.groupOf(this.keys(name).lock));
  }

  nodeOf(name: string): string {
    if (!this.connection.isCluster) return this.connection.node;
    return this.connection.nodeOf(this.keys(name).lock)?.node ?? '';
  }

  outageOf(name: string): LockUnavailableError | undefined {
    const server = this.connection.nodeOf(this.keys(name).lock);
    if (server?.isDown !== true) return undefined;
    const effect = 'refused';
    return new LockUnavailableError(name, { cause: server.outage(), effect });
  }

  private async enterQueue(
    { name, owner, leaseTime }: AcquireRequest,
    { kind, mode, capacity, entry, ownWriteHold }: QueueRequest,
  ): Promise<AcquireReply> {
    const keys = this.keys(name);
    const sentAt = now();
    const stands = entry === undefined ? 0 : 1;
    const args = [
      owner,
      LETTERS[mode],
      kind,
      capacity,
      leaseTime,
      stands,
      entry?.arrival ?? 0,
      ownWriteHold ?? '',
    ];
    const answer = await this.enter(owner, name, async (acquisition) =>
      queueReply(
        await this.connection.run(
          scripts.queueAcquire,
          keys.queued,
          [...args, FENCE_TTL, this.clusterArgument],
          acquisition,
        ),
      ),
    );
    if ('kind' in answer) throw kindMismatch(name, { kind, capacity }, answer);
    this.clocks.of(answer.node).learn(answer.date, sentAt, now());
    return answer.reply;
  }

  renew(requests: readonly RenewRequest[]): readonly Promise<HoldState>[] {
    return this.renewals.renew(requests);
  }

  release(request: ReleaseRequest): Promise<ReleaseReply> {
    const { name, queue } = request;
    const released = this.releasing(request);
    const read = (reply: unknown) => released(releaseReply(reply));
    if (queue === undefined || queue.kind === 'lock') return this.leave(request, undefined, read);
    const { owner, keepFor = 0, leaseTime = 0 } = request;
    const { mode, kind, capacity } = queue;
    const args = [owner, LETTERS[mode], kind, capacity, keepFor, leaseTime, FENCE_TTL, this.clusterArgument];
    const { queued } = this.keys(name);
    return this.run(scripts.queueRelease, queued, args, name, read);
  }

  private async passOn(request: ReleaseRequest, next: NextOwner): Promise<HandOverReply> {
    const released = this.releasing(request);
    try {
      const reply = await this.leave(request, next, this.readingClock(handOverReply));
      return { ...reply, released: released(reply.released) };
    } catch (error) {
      if (!isLockKindMismatchError(error)) throw error;
      // Nothing was given up, and nothing was taken. A separate acquisition says which kind of lock is there now.
      const queue = {
        ...PLAIN,
        mode: 'exclusive',
        entry: { arrival: undefined },
        ownWriteHold: undefined,
      } as const;
      return { released: 'taken', next: await this.acquire({ name: request.name, ...next, queue }) };
    }
  }

  /** Sends the release of a plain lock. */
  private leave<R>(
    { name, owner, fencingToken, keepFor = 0, leaseTime = 0, queue }: ReleaseRequest,
    next: NextOwner | undefined,
    read: (reply: unknown) => R,
  ): Promise<R> {
    const keys = this.keys(name);
    const stood = queue === undefined ? '' : leaseTime;
    const [command, channel] = this.publishing(keys);
    const args: Argument[] = [owner, command, channel, fencingToken ?? 0, FENCE_TTL, keepFor, stood];
    if (next !== undefined) args.push(next.owner, next.leaseTime, this.clusterArgument);
    else if (this.connection.isCluster) args.push('', 0, this.clusterArgument);
    const touched = queue === undefined ? [keys.lock, keys.fence] : keys.queued;
    return this.run(scripts.release, touched, args, name, read);
  }

  /** To be called before a release is sent. The returned function reads the answer. */
  private releasing({ name, owner }: ReleaseRequest): (reply: ReleaseReply) => ReleaseReply {
    const key = this.keys(name).lock;
    const generation = this.connection.generationOf(key);
    for (const acquisition of this.entering.get(owner) ?? []) acquisition.unwanted = true;
    // "Not held" after a reconnection may be the answer to a release that the client has sent twice.
    return (reply) => (this.connection.generationOf(key) === generation ? reply : 'released');
  }

  async forceRelease(name: string, mode?: QueueTerms['mode']): Promise<boolean> {
    await this.learnSharding(name);
    const keys = this.keys(name);
    const letter = mode === undefined ? '' : LETTERS[mode];
    const args = [...this.publishing(keys), letter, FENCE_TTL, this.clusterArgument];
    return await this.run(
      scripts.forceRelease,
      keys.queued,
      args,
      name,
      (reply) => codeOf(reply, 0, 1) === 1,
    );
  }

  async inspect(name: string): Promise<StoredLock | null> {
    await this.learnSharding(name);
    const keys = this.keys(name);
    const [, channel] = this.publishing(keys);
    const count = this.connection.sharded ? 'SHARDNUMSUB' : 'NUMSUB';
    const stored = await this.run(scripts.inspect, keys.queued, [count, channel], name, inspectReply);
    if (stored === null) return null;
    if (!this.connection.isCluster || this.connection.sharded) return stored;
    // Each node counts only its own subscribers.
    return { ...stored, listeners: await this.listenersEverywhere(channel) };
  }

  private async subscribeToQueue(
    client: string,
    onMessage: (message: QueueMessage) => void,
  ): Promise<Subscription> {
    return await this.subscribe(QUEUE_CHANNEL + client, undefined, false, (text) => {
      const message: QueueMessage = text === undefined ? { type: 'missed' } : queueMessage(text, this.clocks);
      // The grant was written over the connection of the process that released. Only a command of the owner can be waited
      // for.
      const unconfirmed = message.type === 'granted' && this.options.replication !== undefined;
      onMessage(unconfirmed ? { type: 'missed', owner: message.owner } : message);
    });
  }

  async subscribeToReleases(name: string, onWake: () => void): Promise<Subscription> {
    await this.learnSharding(name);
    const [, channel] = this.publishing(this.keys(name));
    return await this.subscribe(channel, name, this.connection.sharded, onWake);
  }

  async health(depth: HealthDepth = 'try'): Promise<StoreHealth> {
    const nodes = await this.nodeHealths(depth);
    const warnings = [...this.options.clientWarnings, ...nodeWarnings(nodes)];
    for (const { node, error } of nodes) {
      if (error === NODE_OF_CLUSTER)
        warnings.push({ code: 'cluster-node', node, message: `${node}: ${error}` });
    }
    return { status: overallStatus(nodes, 1), nodes, warnings };
  }

  onConnectionChange(listener: (change: ConnectionChange) => void): void {
    this.connection.onChange(listener);
  }

  async close(): Promise<void> {
    await Promise.all([this.subscriptions?.close(), this.connection.close()]);
  }

  private async nodeHealths(depth: HealthDepth): Promise<readonly NodeHealth[]> {
    try {
      const nodes = await this.connection.nodes();
      return await Promise.all(
        nodes.map((node) =>
          nodeHealth(
            node,
            this.subscriptions,
            depth === 'try' ? this.trial.at(node) : undefined,
            this.connection.isCluster,
          ),
        ),
      );
    } catch (error) {
      return [{ node: this.connection.node, status: 'down', latency: undefined, error: reasonOf(error) }];
    }
  }

  /** A grant counts when replicas have it, if replication is configured. */
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
    await this.learnSharding(name); // this also learns which node has the lock
    const confirm = this.confirmation(name);
    const reply = await ask();
    if (reply.granted) await confirm();
    return reply;
  }

  /** To be made before a write, and called after it: waits until replicas have that write. */
  private confirmation(name: string): () => Promise<void> {
    const { replication } = this.options;
    if (replication === undefined) return () => Promise.resolve();
    const key = this.keys(name).lock;
    const node = this.connection.nodeOf(key);
    const generation = this.connection.generationOf(key);
    return async () => {
      try {
        if (node !== undefined) await replication.confirm(node);
        // Another connection has written nothing, and so has nothing to wait for.
        if (
          node !== this.connection.nodeOf(key) ||
          generation !== this.connection.generationOf(key) ||
          node === undefined
        ) {
          throw new Error('the connection was lost meanwhile');
        }
      } catch (error) {
        // The write that is to be confirmed has been carried out, even if the confirmation has failed.
        throw translate(error, name, 'unknown');
      }
    };
  }

  /** Runs an acquisition. A release of the same owner takes it back while it is still under way. */
  private async enter<R>(
    owner: string,
    name: string,
    ask: (acquisition: AcquisitionGuard) => Promise<R>,
  ): Promise<R> {
    const acquisition = { unwanted: false };
    // Mostly there is one, for which no Set is made.
    const others = this.entering.get(owner);
    if (others === undefined) this.entering.set(owner, [acquisition]);
    else others.push(acquisition);
    try {
      return await ask(acquisition);
    } catch (error) {
      throw isLockKindMismatchError(error) ? error : this.translated(error, name);
    } finally {
      const underway = this.entering.get(owner);
      if (underway === undefined || underway.length === 1) this.entering.delete(owner);
      else underway.splice(underway.indexOf(acquisition), 1);
    }
  }

  /**
   * Asks for plain locks. A name that was last used as a kind with a queue is looked at separately, so that the other names
   * pay nothing for it: its queue may have waiters although the lock has no holder.
   * @param read says of a reply which name that is, if any
   */
  private async retiring<R extends object>(
    script: scripts.Script,
    { keys, args }: Command,
    names: readonly string[],
    read: (reply: unknown) => R | Queued,
    acquisition: AcquisitionGuard,
  ): Promise<R> {
    // Each name once, and a few more times if the other kind comes back meanwhile.
    for (let tries = names.length + 3; ; tries--) {
      const reply = read(await this.connection.run(script, keys, args, acquisition));
      if (!('queued' in reply)) return reply;
      const name = names[reply.queued] ?? '';
      const { queued } = this.keys(name);
      const fenceAndCluster = [FENCE_TTL, this.clusterArgument];
      const retiring = this.connection.run(scripts.retire, queued, fenceAndCluster, acquisition);
      const retired = await retiring.catch((error: unknown) => {
        // Of several names, this is the one that is no lock.
        const reason = this.translated(error, name);
        throw isLockKindMismatchError(reason) ? reason : error;
      });
      const { inUse, ...kind } = retireReply(retired);
      if (inUse || tries === 0) throw kindMismatch(name, PLAIN, kind);
    }
  }

  private keys(name: string): LockKeys {
    return new LockKeys(name, this.options.keyPrefix, this.connection.keyPrefix);
  }

  /** The command and the channel that announce a release. */
  private publishing({ channel, shardChannel }: LockKeys): [command: string, channel: string] {
    return this.connection.sharded ? ['SPUBLISH', shardChannel] : ['PUBLISH', channel];
  }

  /** The last argument of the scripts with a queue. */
  private get clusterArgument(): Argument {
    return this.connection.isCluster ? 'cluster' : '';
  }

  /** Learns the server's clock from the date in a reply. */
  private readingClock<R>(
    read: (reply: unknown, told: (date: number, node: string) => void) => R,
  ): (reply: unknown) => R {
    const sentAt = now();
    return (reply) =>
      read(reply, (date, node) => {
        this.clocks.of(node).learn(date, sentAt, now());
      });
  }

  private async learnSharding(name: string): Promise<void> {
    try {
      await this.connection.learnSharding();
    } catch (error) {
      throw translate(error, name);
    }
  }

  private async subscribe(
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
    const count = async (node: Server) => {
      return countOf(await node.send((client) => client.call('PUBSUB', 'NUMSUB', channel)));
    };
    const counts = await Promise.allSettled((await this.connection.nodes()).map(count));
    return counts.reduce((sum, node) => sum + (node.status === 'fulfilled' ? node.value : 0), 0);
  }

  private async run<R>(
    script: scripts.Script,
    keys: readonly string[],
    args: readonly Argument[],
    name: string | undefined,
    read: (reply: unknown) => R,
  ): Promise<R> {
    try {
      return read(await this.connection.run(script, keys, args));
    } catch (error) {
      throw this.translated(error, name);
    }
  }

  private translated(error: unknown, name: string | undefined): Error {
    return translate(this.connection.isCluster ? error : ofSingleServer(error), name);
  }
}
