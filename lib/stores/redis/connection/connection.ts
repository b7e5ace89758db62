import type { Redis } from 'ioredis';
import type { ConnectionChange } from '../../../port/store-health.js';
import { asError, within } from './bounded.js';
import { listen } from './client-events.js';
import { stageOf } from './connection-stage.js';
import { ConnectionState } from './connection-state.js';
import type { AcquisitionGuard, Argument, Command, Receipt } from '../commands/command.js';
import type { Deployment, Server } from './deployment.js';
import { withCommand } from './command-refused.js';
import { Evaluator } from '../commands/evaluator.js';
import type { Call } from '../commands/lane.js';
import { IdleWatch, SIGN_OF_LIFE } from './idle-watch.js';
import { DroppedWhileIdle, isWithheld, NotConnected, replyOf, TakenBack } from './redis-errors.js';
import type { Script } from '../commands/script.js';
import { SelectedDatabase } from './selected-database.js';
import { SentinelRound } from './sentinel-round.js';
import type { Succession } from './succession.js';
import { afterStep, clearTimer, monotonicTime, setTimer } from '../../../lock.runtime.js';

/** How a cluster sends a command to one of its nodes. */
export interface Sending extends Pick<Call, 'group' | 'until' | 'asking'> {
  /** The command is not sent together with others. */
  readonly isAlone: boolean;
  /** The connection over which it was sent before was dropped while it was idle. */
  readonly isRepeated?: true;
}

const ANYHOW: Sending = { group: 0, until: Infinity, asking: false, isAlone: false };

let epochs = 0;

/**
 * The time between two connections that are given up because they lead to a replica, ms: short at first, because a name may
 * lead to the new master only a moment after the old one has been demoted, and doubled each time, because often there is no
 * better one.
 */
const SHORTEST_REPLICA_PAUSE = 100;
const LONGEST_REPLICA_PAUSE = 5_000;

/** In these states a client has nothing to wait for. */
const SETTLED = new Set(['ready', 'end']);

/** ms until a client that has ended by itself is connected again. */
const REVIVAL = 50;

/**
 * Runs commands over one ioredis client, each with a bounded time. No command is defined on the client, and a client of the
 * application keeps its options and functions. Commands leave in the order of the calls. This allows a release to follow an acquisition of unknown outcome.
 */
export class ServerConnection implements Deployment, Server {
  readonly isCluster = false;
  readonly sharded = false;
  private leftReplicaAt = -Infinity;
  private replicaPause = SHORTEST_REPLICA_PAUSE;
  /** There has been a connection before the present one. */
  private wasReady: boolean;
  private reconnected: (() => void) | undefined;
  /** Grows with every lost connection, and when the application changes the database. A command that is under way meanwhile may have been sent twice by the client. */
  private generation = ++epochs;
  private revival: NodeJS.Timeout | undefined;
  private readonly database: SelectedDatabase;
  private readonly evaluator: Evaluator;
  private readonly sentinels = new SentinelRound();
  private readonly watch: IdleWatch | undefined;
  /** The generation whose connection was dropped while it was idle. */
  private dropped: number | undefined;
  private readonly stopListening: () => void;

  constructor(
    readonly client: Redis,
    readonly node: string,
    private readonly commandTimeout: number,
    /** The client belongs to this library, which closes it and listens to its errors. */
    private readonly owned: boolean,
    private readonly state = new ConnectionState(node),
    /** Given if another connection with the settings of this library follows one that was dropped while it was idle. */
    private readonly succession?: Succession<ServerConnection>,
  ) {
    if (succession !== undefined)
      this.watch = new IdleWatch(client, this.onDropped, () => {
        succession.onSilence?.();
      });
    // A client of the application may have been connected long before.
    this.wasReady = client.status === 'ready';
    this.database = new SelectedDatabase(client, commandTimeout);
    this.evaluator = new Evaluator(client, {
      commandTimeout,
      isUsable: () => this.usable,
      generation: () => this.generation,
      outage: () => this.outage(),
      asked: () => {
        this.watch?.asked();
      },
      lost: (generation, cause) =>
        generation === this.dropped
          ? new DroppedWhileIdle(SIGN_OF_LIFE)
          : new Error('the connection was lost meanwhile', cause === undefined ? undefined : { cause }),
      refusedAsReplica: (error) => {
        this.leaveReplica(error);
      },
    });
    const listeners = {
      ready: () => {
        // The connection is already given up: ioredis 5.4 becomes ready by the answer to INFO although the password was
        // refused.
        if (client.stream.writableEnded) return;
        this.sentinels.succeeded();
        state.settle();
        this.select().catch(() => undefined); // the next command asks again
        if (this.wasReady) this.reconnected?.();
        this.wasReady = true;
      },
      close: () => {
        this.generation = ++epochs;
        this.evaluator.disconnected();
        this.database.disconnected();
        state.set(false);
      },
      end: () => {
        state.settle();
        this.revive();
      },
      error: (error: unknown) => {
        if (owned && this.goesOnWithoutInfo(error)) return;
        if (client.status !== 'ready' && !this.database.isOwnBusiness(error))
          state.failed(this.reasonOf(error));
        // While a client asks the sentinels in turn, round after round, none of its connections is ever closed.
        if (client.status === 'connecting' && client.options.sentinels != null) state.set(false);
      },
      select: () => {
        // A lock that is being taken at this moment could not be kept.
        this.generation = ++epochs;
        this.database.switched();
      },
      sentinelError: (error: unknown) => {
        this.sentinels.answered(error);
      },
    };
    this.stopListening = listen(client, listeners, owned);
  }

  get keyPrefix(): string {
    return this.client.options.keyPrefix ?? '';
  }

  onChange(listener: (change: ConnectionChange) => void): void {
    this.state.onChange(listener);
    // A client of the application may have been connected long before.
    afterStep(() => {
      if (this.client.status === 'ready') this.select().catch(() => undefined);
    });
  }

  /** For what concerns another connection to the same server. */
  report(change: ConnectionChange): void {
    this.state.report(change);
  }

  /**
   * Calls back when another connection has followed. It may lead to another server, and other connections to this one's
   * name may have stayed at the former one: a failover by hand ends none, and a server that ends idle connections ends none that is
   * subscribed.
   */
  onReconnected(listener: () => void): void {
    this.reconnected = listener;
  }

  /** Gives up the present connection for another one. */
  renew(): void {
    this.client.disconnect(true);
  }

  groupOf(): number {
    return 0;
  }

  nodeOf(): this {
    return this;
  }

  generationOf(): number {
    return this.generation;
  }

  /**
   * The connection is lost, or could not be made. False while the first one is being made, and if only the next command can
   * tell whether the connection can be used.
   */
  get isDown(): boolean {
    return this.state.isDown && this.client.status !== 'ready';
  }

  /** Why nothing can be sent now. */
  outage(): Error {
    return this.state.refusal ?? new NotConnected(stageOf(this.client), this.state.lastError);
  }

  run(
    script: Script,
    keys: readonly string[],
    args: readonly Argument[],
    acquisition?: AcquisitionGuard,
    receipt?: Receipt,
    sending: Sending = ANYHOW,
  ): Promise<unknown> {
    if (!this.usable) return this.runWhenReady(script, keys, args, acquisition, receipt, sending);
    if (acquisition?.unwanted === true) return Promise.reject(new TakenBack());
    this.sign(receipt);
    const { generation } = this;
    return new Promise((resolve, reject) => {
      const { group, until, asking, isAlone, isRepeated } = sending;
      const failed = (error: unknown) => {
        // Anything but an acquisition may be carried out twice, and after later commands.
        if (acquisition !== undefined || generation !== this.dropped || isRepeated === true)
          reject(asError(error));
        else {
          const again = { ...sending, isRepeated: true } as const;
          resolve(this.runWhenReady(script, keys, args, undefined, receipt, again));
        }
      };
      const call = { script, keys, args, acquisition, group, until, asking, resolve, reject: failed };
      this.evaluator.run(call, isAlone);
    });
  }

  runEach(script: Script, commands: readonly Command[]): readonly Promise<unknown>[] {
    return commands.map(({ keys, args, receipt }) => this.run(script, keys, args, undefined, receipt));
  }

  /** Sends the commands in one piece, which costs far less than one by one. Resolves with a reply or an error for each. */
  async pipeline(script: Script, commands: readonly Command[]): Promise<readonly unknown[]> {
    const replies = await this.send(async (client) => {
      const pipeline = client.pipeline();
      const [command, text] = this.evaluator.digestless
        ? (['eval', script.source] as const)
        : (['evalsha', script.sha] as const);
      for (const { keys, args, receipt } of commands) {
        this.sign(receipt);
        pipeline[command](text, keys.length, ...keys, ...args);
      }
      const answers = await pipeline.exec();
      // ioredis reports a lost connection in place of each answer.
      const lost = answers?.find(([error]) => error != null && replyOf(error) === undefined)?.[0];
      if (lost != null) throw lost;
      return answers;
    });
    return commands.map((_, index) => {
      const [error, reply] = replies?.[index] ?? [];
      return error == null ? reply : withCommand(error, script);
    });
  }

  /** Sends any other command, with the same bound in time. */
  async send<T>(command: (client: Redis) => Promise<T>, isHeldBack = false): Promise<T> {
    if (!this.usable) {
      const present = this.isGone ? await this.present(Infinity) : this;
      if (present !== this) return await present.send(command, isHeldBack);
      await this.ready(this.commandTimeout);
    }
    this.evaluator.flush();
    const { generation } = this;
    const send = () => within(this.commandTimeout, () => command(this.client));
    if (isHeldBack) return await (this.watch?.during(send) ?? send());
    this.watch?.asked();
    try {
      return await send();
    } catch (error) {
      if (generation !== this.dropped) throw error;
      const present = await this.present(Infinity);
      await present.ready(this.commandTimeout);
      return await within(this.commandTimeout, () => command(present.client));
    }
  }

  nodes(): Promise<readonly ServerConnection[]> {
    return Promise.resolve([this]);
  }

  refresh(): Promise<void> {
    return Promise.resolve();
  }

  learnSharding(): Promise<void> {
    return Promise.resolve();
  }

  async close(): Promise<void> {
    this.detach();
    if (!this.owned) return;
    // A late error of a closing client has no receiver.
    this.client.on('error', () => undefined);
    // A client that has never been used would connect only to send QUIT.
    if (this.client.status !== 'wait')
      await within(this.commandTimeout, () => this.client.quit()).catch(() => undefined);
    this.client.disconnect();
  }

  /** Leaves the client alone from now on. */
  detach(): void {
    this.stopListening();
    clearTimer(this.revival);
    this.watch?.close();
    this.state.settle();
  }

  private async runWhenReady(
    script: Script,
    keys: readonly string[],
    args: readonly Argument[],
    acquisition: AcquisitionGuard | undefined,
    receipt: Receipt | undefined,
    sending: Sending,
  ): Promise<unknown> {
    const present = this.isGone ? await this.present(sending.until) : this;
    if (present !== this) return await present.run(script, keys, args, acquisition, receipt, sending);
    await this.ready(Math.max(1, Math.min(this.commandTimeout, sending.until - monotonicTime())));
    return await this.run(script, keys, args, acquisition, receipt, sending);
  }

  /** It was dropped while it was idle, and its client makes no other one. */
  private get isGone(): boolean {
    return (
      this.dropped !== undefined && this.succession?.next !== undefined && this.client.status !== 'ready'
    );
  }

  /** The connection that follows, or this one. */
  private async present(until: number): Promise<ServerConnection> {
    return (await this.succession?.next?.(until)) ?? this;
  }

  private sign(receipt: Receipt | undefined): void {
    if (receipt === undefined) return;
    receipt.server = this;
    receipt.generation = this.generation;
  }

  private get usable(): boolean {
    return this.client.status === 'ready' && this.database.certain;
  }

  /**
   * Waits for a connection to the right database, but not longer than for a reply. The offline queue of ioredis, which has
   * no bound in time, is never used.
   */
  private async ready(time: number): Promise<void> {
    const { client, state } = this;
    const until = monotonicTime() + time;
    if (client.status === 'wait') client.connect().catch(() => undefined);
    if (!SETTLED.has(client.status) && state.refusal === undefined) await state.news(time);
    if (client.status !== 'ready') throw this.outage();
    if (!this.database.certain) await within(Math.max(1, until - monotonicTime()), () => this.select());
  }

  private reasonOf(error: unknown): unknown {
    if (this.client.status === 'connecting') return this.sentinels.failed() ?? error;
    this.sentinels.succeeded();
    return error;
  }

  /**
   * ioredis sends INFO before it becomes ready, and without the command it would never become ready. The next connection
   * does not send INFO. If the user may not send it, ioredis goes on by itself.
   */
  private goesOnWithoutInfo(error: unknown): boolean {
    const { client } = this;
    const asked = (error as { command?: { name?: unknown } }).command?.name === 'info';
    if (client.status === 'ready' || !asked || !isWithheld(error)) return false;
    client.options.enableReadyCheck = false;
    return true;
  }

  /** A connection to the wrong database is no better than none. */
  private async select(): Promise<void> {
    try {
      await this.database.confirm();
      this.state.set(true);
    } catch (error) {
      this.state.failed(error);
      this.state.set(false);
      throw error;
    }
  }

  private readonly onDropped = (): void => {
    this.dropped = this.generation;
    this.generation = ++epochs;
    this.state.failed(new DroppedWhileIdle(SIGN_OF_LIFE));
    this.renew();
  };

  /** For a demoted master: its name or address may lead to the new one by now, but its connection never will. */
  private leaveReplica(error: unknown): void {
    const sinceLast = monotonicTime() - this.leftReplicaAt;
    if (!this.owned || sinceLast < this.replicaPause) return;
    // No connection has led to a replica for a while: this is another failover.
    const isAnother = sinceLast > 2 * LONGEST_REPLICA_PAUSE;
    this.replicaPause = isAnother
      ? SHORTEST_REPLICA_PAUSE
      : Math.min(2 * this.replicaPause, LONGEST_REPLICA_PAUSE);
    this.leftReplicaAt = monotonicTime();
    this.state.failed(error);
    this.renew();
  }

  /**
   * A client ends if Sentinel tells it of a new master while it asks for the present one, and ioredis never connects it
   * again.
   */
  private revive(): void {
    if (!this.owned || this.client.options.sentinels == null) return;
    this.revival = setTimer(() => {
      this.client.connect().catch(() => undefined);
    }, REVIVAL);
  }
}
