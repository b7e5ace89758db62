import type {
  AcquireAllReply,
  AcquireAllRequest,
  AcquireReply,
  AcquireRequest,
  ConnectionChange,
  HoldState,
  LockStore,
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
import { keysOf, type LockKeys } from './keys.js';
import { nodeHealth } from './node-health.js';
import { LETTERS, QUEUE_CHANNEL, queueMessage, storedLock, type InspectReply } from './queue-protocol.js';
import { notALock, translate } from './redis-errors.js';
import type { Replication } from './replication.js';
import { ServerClock } from './server-clock.js';
import * as scripts from './script.js';
import { Subscriber } from './subscriber.js';

/**
 * How long the fence outlives the lock, ms. Tokens are the server's time, so the fence matters only while the clock
 * might step back; an hour covers more than any step seen, and names that are used once leave nothing for good.
 */
const FENCE_TTL = 3_600_000;
/** Holds per renewal command: big enough to spread its cost, small enough not to keep the server from others. */
const RENEWAL_BATCH = 100;

export interface RedisLockStoreOptions {
  readonly connection: RedisConnection;
  /** Makes the second connection, for messages, when somebody has to wait for the first time. */
  readonly subscriberConnection: () => RedisConnection;
  readonly keyPrefix: string;
  /** What is risky about the client that was given. */
  readonly clientWarnings: readonly StoreWarning[];
  /** Of what the connection has written. Nothing is waited for without it. */
  readonly replication?: Replication | undefined;
}

/** Locks on one Redis deployment. The plain lock is wire-compatible with Redisson's RLock. */
export class RedisLockStore implements LockStore {
  private readonly connection: RedisConnection;
  private readonly clientPrefix: string;
  private readonly clock = new ServerClock();
  /** The acquisitions under way, by owner. */
  private readonly entering = new Map<string, Set<{ unwanted: boolean }>>();
  private subscriber: Subscriber | undefined;

  constructor(private readonly options: RedisLockStoreOptions) {
    this.connection = options.connection;
    this.clientPrefix = options.connection.client.options.keyPrefix ?? '';
  }

  async acquire(request: AcquireRequest): Promise<AcquireReply> {
    const { name, queue } = request;
    const { epoch } = this.connection;
    const reply = await (queue === undefined ? this.take(request) : this.enterQueue(request, queue));
    if (reply.granted) await this.replicated(epoch, name);
    return reply;
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
    const { epoch } = this.connection;
    const reply = await this.enter(owner, scripts.acquireAll, keys, args, names.join(','));
    const [first, ttl, holder] = reply as [number | string, (number | string)?, (string | null)?];
    if (Number(first) > 0) {
      await this.replicated(epoch, names.join(','));
      return { granted: true, fencingTokens: (reply as unknown[]).map(Number) };
    }
    const name = names[-Number(first) - 1] ?? '';
    if (ttl === undefined) throw notALock(name);
    return { granted: false, name, retryAfter: milliseconds(ttl), holder: holder ?? undefined };
  }

  placeOf(): string {
    return '';
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
      [...args, QUEUE_CHANNEL, FENCE_TTL],
      name,
    )) as [number | string, number | string, number | string, number | string | null, string | null];
    const [outcome, second, third, arrival, holder] = reply;
    if (Number(outcome) < 0)
      throw kindMismatch(name, { kind, capacity }, { kind: String(second), capacity: Number(third) });
    this.clock.learn(Number(second), sentAt);
    if (Number(outcome) === 1) return { granted: true, fencingToken: Number(third) };
    return {
      granted: false,
      retryAfter: Number(third),
      arrival: Number(arrival) > 0 ? Number(arrival) : undefined,
      holder: holder ?? undefined,
    };
  }

  renew(requests: readonly RenewRequest[]): readonly Promise<HoldState>[] {
    const renewals: Promise<HoldState>[] = [];
    for (let from = 0; from < requests.length; from += RENEWAL_BATCH) {
      const batch = requests.slice(from, from + RENEWAL_BATCH);
      const name = batch.length === 1 ? batch[0]?.name : undefined;
      const { epoch } = this.connection;
      const reply = this.run(
        scripts.renew,
        batch.flatMap(({ name }) => {
          const { lock, fence } = this.keys(name);
          return [lock, fence];
        }),
        [FENCE_TTL, ...batch.flatMap(({ owner, leaseTime }) => [owner, leaseTime])],
        name,
      ) as Promise<readonly (number | string)[]>;
      // A hold that is gone is so on any server.
      const renewal = async (index: number): Promise<HoldState> => {
        const state = holdState((await reply)[index]);
        if (state === 'held') await this.replicated(epoch, name);
        return state;
      };
      batch.forEach((_, index) => renewals.push(renewal(index)));
    }
    return renewals;
  }

  async release({ name, owner, fencingToken, keepFor = 0, queue }: ReleaseRequest): Promise<boolean> {
    const keys = this.keys(name);
    const { epoch } = this.connection;
    for (const acquisition of this.entering.get(owner) ?? []) acquisition.unwanted = true;
    const released =
      queue === undefined
        ? await this.run(
            scripts.release,
            [keys.lock, keys.fence],
            [owner, keys.channel, fencingToken ?? 0, FENCE_TTL, keepFor],
            name,
          )
        : await this.run(
            scripts.queueRelease,
            [keys.lock, keys.queue, keys.fence],
            [owner, LETTERS[queue.mode], queue.kind, queue.capacity, keepFor, QUEUE_CHANNEL, FENCE_TTL],
            name,
          );
    // "Not held" after a reconnection may be the answer to a release that the client has sent twice.
    return Number(released) === 1 || this.connection.epoch !== epoch;
  }

  async forceRelease(name: string): Promise<boolean> {
    const { lock, queue, fence, channel } = this.keys(name);
    const args = [channel, QUEUE_CHANNEL, FENCE_TTL];
    return Number(await this.run(scripts.forceRelease, [lock, queue, fence], args, name)) === 1;
  }

  async inspect(name: string): Promise<StoredLock | null> {
    const { lock, queue, fence, channel } = this.keys(name);
    const reply = await this.run(scripts.inspect, [lock, fence, queue], [channel], name);
    return reply === null ? null : storedLock(reply as InspectReply);
  }

  async listen(client: string, onMessage: (message: QueueMessage) => void): Promise<Subscription> {
    this.subscriber ??= new Subscriber(this.options.subscriberConnection());
    try {
      return await this.subscriber.subscribe(QUEUE_CHANNEL + client, (text) => {
        const message: QueueMessage =
          text === undefined ? { type: 'missed' } : queueMessage(text, this.clock);
        // A grant was written over the connection of whoever released: only what its owner asks for can be waited for.
        const unconfirmed = message.type === 'granted' && this.options.replication !== undefined;
        onMessage(unconfirmed ? { type: 'missed', owner: message.owner } : message);
      });
    } catch (error) {
      throw translate(error, undefined);
    }
  }

  async subscribe(name: string, onWake: () => void): Promise<Subscription> {
    this.subscriber ??= new Subscriber(this.options.subscriberConnection());
    try {
      return await this.subscriber.subscribe(this.keys(name).channel, () => {
        onWake();
      });
    } catch (error) {
      throw translate(error, name);
    }
  }

  async health(): Promise<StoreHealth> {
    const nodes = [await nodeHealth(this.connection, this.subscriber)];
    const warnings = [...this.options.clientWarnings, ...nodeWarnings(nodes)];
    return { status: overallStatus(nodes, 1), nodes, warnings };
  }

  onConnectionChange(listener: (change: ConnectionChange) => void): void {
    this.connection.onChange(listener);
  }

  async close(): Promise<void> {
    await Promise.all([this.subscriber?.close(), this.connection.close()]);
  }

  /** Waits until replicas have what has just been written, if they are to have it before it counts. */
  private async replicated(epoch: number, name: string | undefined): Promise<void> {
    const { replication } = this.options;
    if (replication === undefined) return;
    try {
      await replication.confirm();
      // A new connection has written nothing, and so has nothing to wait for.
      if (epoch !== this.connection.epoch) throw new Error('the connection was lost meanwhile');
    } catch (error) {
      throw translate(error, name);
    }
  }

  /** An acquisition, which a release of the same owner takes back while it is still under way. */
  private async enter(
    owner: string,
    script: scripts.Script,
    keys: readonly string[],
    args: readonly (string | number)[],
    name: string,
  ): Promise<unknown> {
    const acquisition = { unwanted: false };
    const entering = this.entering.get(owner) ?? new Set();
    this.entering.set(owner, entering.add(acquisition));
    try {
      return await this.run(script, keys, args, name, acquisition);
    } finally {
      entering.delete(acquisition);
      if (entering.size === 0) this.entering.delete(owner);
    }
  }

  private keys(name: string): LockKeys {
    return keysOf(name, this.options.keyPrefix, this.clientPrefix);
  }

  private async run(
    script: scripts.Script,
    keys: readonly string[],
    args: readonly (string | number)[],
    name: string | undefined,
    acquisition?: { readonly unwanted: boolean },
  ): Promise<unknown> {
    try {
      return await this.connection.run(script, keys, args, acquisition);
    } catch (error) {
      throw translate(error, name);
    }
  }
}

function holdState(code: number | string | undefined): HoldState {
  if (Number(code) === 1) return 'held';
  return Number(code) === 0 ? 'deleted' : 'taken';
}

/** A PTTL as a time to wait: a key without a TTL has no end. */
function milliseconds(ttl: number | string): number {
  return Number(ttl) < 0 ? Infinity : Number(ttl);
}
