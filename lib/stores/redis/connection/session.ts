import type { Redis } from 'ioredis';
import { afterStep, clearTimer, monotonicTime, setTimer } from '../../../runtime/runtime.js';
import type { ConnectionChange } from '../../../store/store-health.js';
import { within } from './bounded.js';
import { listen } from './client-events.js';
import { isOpen, stageOf } from './connection-stage.js';
import type { ConnectionState } from './connection-state.js';
import { IdleWatch } from './idle-watch.js';
import { DroppedWhileIdle, isWithheld, NotConnected } from './redis-errors.js';
import { ReplicaPauses } from './replica-pauses.js';
import { SelectedDatabase } from './selected-database.js';
import { WATCH } from './sentinel-connector.js';
import { SentinelRound } from './sentinel-round.js';
import type { Succession } from './succession.js';

let epochs = 0;

export interface SessionOptions {
  /** ms */
  readonly commandTimeout: number;
  /** The client belongs to this library, which closes it and listens to its errors. */
  readonly owned: boolean;
  /** Given if another connection with the settings of this library follows one that was dropped while it was idle. */
  readonly succession: Succession<unknown> | undefined;
}

/** The connections that one client has to its server, one after the other: whether one can be used now, and why not. */
export class Session {
  readonly commandTimeout: number;
  /** Is called when another connection has followed. */
  onReconnected: (() => void) | undefined;
  /** Is called when a connection is lost. */
  onClosed: (() => void) | undefined;
  /** There has been a connection before the present one. */
  private wasReady: boolean;
  private current = ++epochs;
  private revival: NodeJS.Timeout | undefined;
  private readonly database: SelectedDatabase;
  private readonly sentinels = new SentinelRound();
  private readonly replicas = new ReplicaPauses();
  private readonly watch: IdleWatch | undefined;
  /** The generation whose connection was dropped while it was idle, and how that showed. */
  private dropped: { readonly generation: number; readonly error: DroppedWhileIdle } | undefined;
  /** The last connection was given up because it led to a replica. The present one may lead there, too. */
  private isDoubtful = false;
  private isLeft = false;
  private readonly stopListening: () => void;

  constructor(
    readonly client: Redis,
    private readonly state: ConnectionState,
    private readonly options: SessionOptions,
  ) {
    const { owned, commandTimeout, succession } = options;
    this.commandTimeout = commandTimeout;
    if (succession !== undefined)
      this.watch = new IdleWatch(client, state.roundTrip, commandTimeout, this.onDropped, () => {
        succession.onSilence?.();
      });
    // A client of the application may have been connected long before.
    this.wasReady = client.status === 'ready';
    this.database = new SelectedDatabase(client, commandTimeout);
    const listeners = {
      ready: this.onReady,
      close: () => {
        this.begin();
        this.onClosed?.();
        this.database.disconnected();
        if (this.watch?.isIdle === true) state.endedWhileIdle();
        else state.set(false);
      },
      end: this.onEnd,
      error: this.onError,
      select: () => {
        // A lock that is being taken at this moment could not be kept.
        this.begin();
        this.database.switched();
      },
      sentinelError: (error: unknown) => {
        this.sentinels.answered(error);
      },
      [WATCH]: (refusal: unknown) => {
        state.watched(refusal as Error | undefined);
      },
    };
    this.stopListening = listen(client, listeners, owned);
  }

  /**
   * Grows with every lost connection, and when the application changes the database. A command that is under way meanwhile
   * may have been sent twice by the client.
   */
  get generation(): number {
    return this.current;
  }

  /** There is a connection to the right database. */
  get usable(): boolean {
    return isOpen(this.client) && this.database.certain;
  }

  /**
   * The connection is lost, or could not be made. False while the first one is being made, and if only the next command can
   * tell whether the connection can be used.
   */
  get isDown(): boolean {
    return this.state.isDown && !isOpen(this.client);
  }

  onChange(listener: (change: ConnectionChange) => void): void {
    this.state.onChange(listener);
    // A client of the application may have been connected long before.
    afterStep(() => {
      if (isOpen(this.client)) this.select().catch(() => undefined);
    });
  }

  /** Why nothing can be sent now. */
  outage(): Error {
    return this.state.refusal ?? new NotConnected(stageOf(this.client), this.state.lastError);
  }

  wasDropped(generation: number): boolean {
    return generation === this.dropped?.generation;
  }

  /** It was dropped while it was idle, and its client makes no other one. */
  get isGone(): boolean {
    const { client, options } = this;
    return this.dropped !== undefined && options.succession?.next !== undefined && !isOpen(client);
  }

  /** Why the connection of that generation is gone, which may have carried the command out. */
  lost(generation: number, cause?: unknown): Error {
    if (generation === this.dropped?.generation) return this.dropped.error;
    return new Error('the connection was lost meanwhile', cause === undefined ? undefined : { cause });
  }

  /** A command leaves. */
  asked(): void {
    this.watch?.asked();
  }

  /** A command has its answer, or is given up. */
  answered(): void {
    this.watch?.answered();
  }

  /** Sends a command whose answer the server may hold back. */
  during<T>(send: () => Promise<T>): Promise<T> {
    return this.watch?.during(send) ?? send();
  }

  /**
   * Waits for a connection to the right database, but not longer than for a reply. The offline queue of ioredis, which has
   * no bound in time, is never used.
   */
  async ready(time = this.commandTimeout): Promise<void> {
    const { client, state } = this;
    const until = monotonicTime() + time;
    if (client.status === 'wait') {
      state.attempted();
      client.connect().catch(() => undefined);
    }
    if (!isOpen(client) && this.mayFollow) await state.news(time);
    if (!isOpen(client)) throw this.outage();
    if (!this.database.certain) await within(Math.max(1, until - monotonicTime()), () => this.select());
  }

  /** Gives up the present connection for another one, at once: the peer of a dropped connection never answers its end. */
  renew(): void {
    const { client } = this;
    client.disconnect(true);
    (client.stream as Redis['stream'] | undefined)?.destroy();
  }

  /** For a demoted master: its name or address may lead to the new one by now, but its connection never will. */
  refusedAsReplica(error: unknown): void {
    if (!this.options.owned || !this.replicas.mayLeave()) return;
    this.isDoubtful = true;
    this.state.failed(error);
    // The answers that are under way still arrive.
    this.client.disconnect(true);
  }

  /** A script that writes has been carried out over the present connection: it does not lead to a replica. */
  carriedOut(): void {
    if (!this.isDoubtful) return;
    this.isDoubtful = false;
    this.state.set(true);
  }

  /** Leaves the client alone from now on. */
  detach(): void {
    this.isLeft = true;
    this.stopListening();
    clearTimer(this.revival);
    this.watch?.close();
    this.state.settle();
  }

  private begin(): void {
    this.current = ++epochs;
  }

  /** Another connection may follow. A client of the application that has ended makes none by itself. */
  private get mayFollow(): boolean {
    const isOver = this.isLeft || (this.client.status === 'end' && !this.options.owned);
    return !isOver && this.state.refusal === undefined;
  }

  private readonly onReady = (): void => {
    const { client } = this;
    if (!isOpen(client)) {
      // ioredis 5 becomes ready when the password was refused, or the connection was lost before the first answer. While it
      // counts as ready, the timer for its next connection has no effect, and it would never connect again.
      const isDue = Reflect.get(client, 'reconnectTimeout') != null;
      if (isDue && client.status === 'ready' && client.stream.destroyed) client.status = 'reconnecting';
      return;
    }
    this.sentinels.succeeded();
    this.state.settle();
    this.select().catch(() => undefined); // the next command asks again
    if (this.wasReady) this.onReconnected?.();
    this.wasReady = true;
  };

  private readonly onError = (error: unknown): void => {
    const { client, state } = this;
    if (this.options.owned && this.goesOnWithoutInfo(error)) return;
    // An error of a connection in use is the reason of its end only if its socket has failed.
    const isReason =
      client.status !== 'ready' || (client.stream as Redis['stream'] | undefined)?.errored === error;
    if (isReason && !this.database.isOwnBusiness(error)) state.failed(this.reasonOf(error));
    // While a client asks the sentinels in turn, round after round, none of its connections is ever closed.
    if (client.status === 'connecting' && client.options.sentinels != null) state.set(false);
  };

  private readonly onDropped = (silence: number): void => {
    this.dropped = { generation: this.generation, error: new DroppedWhileIdle(silence) };
    this.begin();
    this.state.failed(this.dropped.error);
    this.renew();
  };

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
      if (!this.isDoubtful) this.state.set(true);
    } catch (error) {
      this.state.failed(error);
      this.state.set(false);
      throw error;
    }
  }

  /**
   * A client ends if it has nothing to connect to: Sentinel tells it of a new master while it asks for the present one, or
   * its connector fails. ioredis never connects it again.
   */
  private readonly onEnd = (): void => {
    const { client, state, options } = this;
    state.set(false);
    const pause = options.owned ? client.options.retryStrategy?.(1) : undefined;
    if (typeof pause !== 'number') state.settle();
    else this.revival = setTimer(() => void client.connect().catch(() => undefined), pause);
  };
}
