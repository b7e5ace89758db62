import type {
  AcquireAllReply,
  AcquireAllRequest,
  AcquireReply,
  AcquireRequest,
  HandOverReply,
  LockStore,
  NextOwner,
  ReleaseRequest,
  StoreLabels,
  StorePeriods,
  StoreWaits,
  StoreQueues,
  Subscription,
} from '../../store/lock-store.js';
import type { QueueMessage } from '../../store/queue-messages.js';
import type { HealthDepth, NodeHealth, StoreHealth, StoreWarning } from '../../store/store-health.js';
import { LockUnavailableError } from '../../api/errors.js';
import { isLockKindMismatchError } from '../../api/error-guards.js';
import { PLAIN } from '../../store/kind-mismatch.js';
import { nodeWarnings, quorumNodeWarnings } from '../../store/node-warnings.js';
import { overallStatus } from '../../store/overall-status.js';
import { AcquireCommands } from './commands/acquire-commands.js';
import type { Argument } from './commands/command.js';
import { Confirmations } from './commands/confirmations.js';
import type { Deployment, Listener, Subscriptions } from './connection/deployment.js';
import { forcedReleases } from './commands/forced-releases.js';
import { inspect } from './commands/inspection.js';
import { charteredNodes } from './commands/charter.js';
import { clientKeyOf } from './commands/keys.js';
import { Listing } from './commands/listing.js';
import { nodeHealth } from './health/node-health.js';
import { QUEUE_CHANNEL, queueMessage } from './messages/queue-protocol.js';
import { Periods } from './commands/periods.js';
import { NODE_OF_CLUSTER, reasonOf, translate } from './connection/redis-errors.js';
import { ReleaseCommands } from './commands/release-commands.js';
import { requestRelease } from './commands/release-requests.js';
import { Renewals } from './commands/renewals.js';
import { clientNoteReply } from './commands/replies.js';
import type { Replication } from './commands/replication.js';
import { ScriptCalls } from './commands/script-calls.js';
import * as scripts from './commands/script.js';
import { transfers } from './commands/transfers.js';
import { Trial } from './health/trial.js';

export interface RedisLockStoreOptions {
  readonly connection: Deployment;
  /** Opens the connections for messages, when a caller has to wait or has held a lock for a second, for the first time. */
  readonly subscriptions: () => Subscriptions;
  readonly keyPrefix: string;
  /** The risky settings of the client that was given. */
  readonly clientWarnings: readonly StoreWarning[];
  /** It is one of the nodes of a quorum. */
  readonly isMember: boolean;
  /** Confirms the writes of the connection. Without it, the store waits for no replica. */
  readonly replication?: Replication | undefined;
}

/** Locks on one Redis deployment. The plain lock is wire-compatible with Redisson's RLock. */
export class RedisLockStore implements LockStore {
  private readonly connection: Deployment;
  private readonly calls: ScriptCalls;
  private readonly acquiring: AcquireCommands;
  private readonly releasing: ReleaseCommands;
  private readonly trial: Trial;
  readonly renew: LockStore['renew'];
  readonly release: LockStore['release'];
  readonly together: Required<LockStore>['together'];
  readonly transfer: LockStore['transfer'];
  readonly forceRelease: LockStore['forceRelease'];
  readonly requestRelease: LockStore['requestRelease'];
  readonly inspect: LockStore['inspect'];
  readonly onConnectionChange: LockStore['onConnectionChange'];
  readonly queues: StoreQueues;
  readonly labels: StoreLabels;
  readonly periods: StorePeriods;
  readonly waits: StoreWaits;
  readonly listing: Listing;
  private subscriptions: Subscriptions | undefined;

  constructor(private readonly options: RedisLockStoreOptions) {
    const { connection, replication } = options;
    const calls = new ScriptCalls(connection, options.keyPrefix);
    const confirmations = new Confirmations(replication);
    const acquiring = new AcquireCommands(connection, calls, confirmations);
    const releasing = new ReleaseCommands(connection, calls, acquiring);
    const renewals = new Renewals(connection, calls, confirmations);
    this.connection = connection;
    this.calls = calls;
    this.acquiring = acquiring;
    this.releasing = releasing;
    this.renew = (requests) => renewals.renew(requests);
    this.release = (request) => releasing.release(request);
    this.together = (run) => releasing.together(run);
    this.transfer = transfers(connection, calls, acquiring, confirmations);
    this.forceRelease = forcedReleases(connection, calls, releasing);
    this.requestRelease = (request) => requestRelease(connection, calls, request);
    this.inspect = (name) => inspect(connection, calls, name);
    this.onConnectionChange = (listener) => {
      connection.onChange(listener);
    };
    this.queues = {
      subscribe: (client, onMessage) => this.subscribeToQueue(client, onMessage),
      // Only the owner of a grant can wait for the replicas that have to confirm it.
      handOver: replication !== undefined ? undefined : (request, next) => this.passOn(request, next),
    };
    this.periods = new Periods(calls, confirmations);
    this.labels = this.notes('label');
    this.waits = this.notes('waits');
    this.listing = new Listing(connection, calls, connection.keyPrefix + options.keyPrefix);
    this.trial = new Trial(connection, calls, replication);
  }

  acquire(request: AcquireRequest): Promise<AcquireReply> {
    this.releasing.flush();
    return this.acquiring.acquire(request);
  }

  acquireAll(request: AcquireAllRequest): Promise<AcquireAllReply> {
    this.releasing.flush();
    return this.acquiring.acquireAll(request);
  }

  locationOf(name: string): string {
    return String(this.connection.groupOf(this.calls.keys(name).lock));
  }

  nodeOf(name: string): string {
    if (!this.connection.isCluster) return this.connection.node;
    return this.connection.nodeOf(this.calls.keys(name).lock)?.node ?? '';
  }

  outageOf(name: string): LockUnavailableError | undefined {
    const server = this.connection.nodeOf(this.calls.keys(name).lock);
    if (server?.isDown !== true) return undefined;
    const effect = 'refused';
    return new LockUnavailableError(name, { cause: server.outage(), effect });
  }

  private async passOn(request: ReleaseRequest, next: NextOwner): Promise<HandOverReply> {
    try {
      return await this.releasing.passOn(request, next);
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

  /** What clients tell each other: for each client a key of its own, which ends by itself. */
  private notes(role: 'label' | 'waits'): StoreWaits {
    const call = (client: string, args: readonly Argument[]): Promise<string | undefined> => {
      const key = clientKeyOf(this.options.keyPrefix, role, client);
      return this.calls.run(scripts.note, [key], args, undefined, clientNoteReply);
    };
    return {
      keep: async (client, note, time) => {
        await call(client, [Math.ceil(time), note]);
      },
      find: (client) => call(client, ['']),
      forget: async (client) => {
        await call(client, [0]);
      },
    };
  }

  private async subscribeToQueue(
    client: string,
    onMessage: (message: QueueMessage) => void,
  ): Promise<Subscription> {
    return await this.subscribe(QUEUE_CHANNEL + client, undefined, false, (text) => {
      const message: QueueMessage =
        text === undefined ? { type: 'missed' } : queueMessage(text, this.calls.clocks);
      // The grant was written over the connection of the process that released. Only a command of the owner can be waited
      // for.
      const unconfirmed = message.type === 'granted' && this.options.replication !== undefined;
      onMessage(unconfirmed ? { type: 'missed', owner: message.owner } : message);
    });
  }

  async subscribeToReleases(name: string, onWake: () => void): Promise<Subscription> {
    await this.calls.learnSharding(name);
    const [, channel] = this.calls.publishing(this.calls.keys(name));
    return await this.subscribe(channel, name, this.connection.sharded, onWake);
  }

  async health(depth: HealthDepth = 'try'): Promise<StoreHealth> {
    const nodes = await this.nodeHealths(depth);
    const warnings = [...this.options.clientWarnings, ...nodeWarnings(nodes)];
    for (const { node, error } of nodes) {
      if (error === NODE_OF_CLUSTER)
        warnings.push({ code: 'cluster-node', node, message: `${node}: ${error}` });
    }
    // A server that is down would not tell for as long as a command takes.
    const present = nodes.filter(({ status }) => status !== 'down').map(({ node }) => node);
    if (!this.options.isMember && present.length > 0)
      warnings.push(...quorumNodeWarnings(await charteredNodes(this.connection, present)));
    return { status: overallStatus(nodes, 1), nodes, warnings };
  }

  async close(): Promise<void> {
    await Promise.all([this.subscriptions?.close(), this.connection.close()]);
  }

  private async nodeHealths(depth: HealthDepth): Promise<readonly NodeHealth[]> {
    const nodes = await this.askNodes(depth);
    if (!this.connection.isCluster || nodes.every(({ status }) => status !== 'down')) return nodes;
    // A client that was idle does not know of a failover. If a node is away, the next question goes to its successor, because
    // this one would wait for the node twice.
    const refreshed = this.connection.refresh();
    if (nodes.every(({ role }) => role !== 'replica')) return nodes;
    await refreshed;
    return await this.askNodes(depth);
  }

  private async askNodes(depth: HealthDepth): Promise<readonly NodeHealth[]> {
    try {
      const nodes = await this.connection.nodes();
      return await Promise.all(
        nodes.map((node) =>
          nodeHealth(
            node,
            this.subscriptions,
            depth === 'try' ? () => this.trial.at(node) : undefined,
            this.connection.isCluster,
          ),
        ),
      );
    } catch (error) {
      return [{ node: this.connection.node, status: 'down', latency: undefined, error: reasonOf(error) }];
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
}
