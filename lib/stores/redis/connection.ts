import type { Redis } from 'ioredis';
import type { ConnectionChange } from '../lock-store.js';
import { CommandTimeout, NotConnected, replyCode } from './redis-errors.js';
import type { Script } from './script.js';

type Argument = string | number;

/** How often a connection may be given up because it leads to a replica: often no better one is to be had, ms. */
const REPLICA_PAUSE = 5_000;

/**
 * Runs commands over one ioredis client, each with a bounded time. The client is used as it is: no command is
 * defined on it, no option of it is changed. Commands leave in the order of the calls, which is what lets a release
 * follow an acquisition of unknown outcome.
 */
export class RedisConnection {
  /** Grows with every lost connection; a command that spans two values may have been sent twice by the client. */
  epoch = 0;
  private connected: boolean | undefined;
  private lastError: unknown;
  private leftReplicaAt = -Infinity;
  private readonly queueing = new Set<() => void>();
  private readonly listeners: ((change: ConnectionChange) => void)[] = [];
  private readonly handlers: Readonly<Record<string, (error?: unknown) => void>>;

  constructor(
    readonly client: Redis,
    readonly node: string,
    private readonly commandTimeout: number,
    /** Ours to close, and to hear the errors of. */
    private readonly owned: boolean,
  ) {
    this.handlers = {
      ready: () => {
        this.settleQueue();
        this.changed(true);
      },
      close: () => {
        this.epoch++;
        this.changed(false);
      },
      end: () => {
        this.settleQueue();
      },
      // Without a listener ioredis prints the error; on the user's own client that is the user's choice.
      ...(owned && {
        error: (error: unknown) => {
          // ioredis attaches what it has sent, and for a handshake that is the password.
          if (error instanceof Error) Reflect.deleteProperty(error, 'command');
          this.lastError = error;
        },
      }),
    };
    for (const [event, handler] of Object.entries(this.handlers)) client.on(event, handler);
  }

  onChange(listener: (change: ConnectionChange) => void): void {
    this.listeners.push(listener);
    // A client of the user's may have been connected long before.
    queueMicrotask(() => {
      if (this.client.status === 'ready') this.changed(true);
    });
  }

  /**
   * EVALSHA, and EVAL where the server does not know the script (a restart, a failover, SCRIPT FLUSH).
   * @param acquisition given for what a later command may take back: then it is not sent any more, nor sent again, and
   * an answer from after a lost connection does not count, because the first copy of the command may arrive yet
   */
  async run(
    script: Script,
    keys: readonly string[],
    args: readonly Argument[],
    acquisition?: { readonly unwanted: boolean },
  ): Promise<unknown> {
    if (this.client.status !== 'ready') await this.ready();
    if (acquisition?.unwanted === true) throw new NotConnected('taken back', undefined);
    const { epoch } = this;
    const reply = await this.bounded((over) =>
      this.client.evalsha(script.sha, keys.length, ...keys, ...args).catch((error: unknown) => {
        if (replyCode(error) === 'READONLY') this.leaveReplica(error);
        // Once the time is over a release may have followed, which nothing may come after.
        if (over() || acquisition?.unwanted === true || replyCode(error) !== 'NOSCRIPT') throw error;
        return this.client.eval(script.source, keys.length, ...keys, ...args);
      }),
    );
    if (acquisition !== undefined && epoch !== this.epoch)
      throw new Error('the connection was lost meanwhile');
    return reply;
  }

  /** Any other command, likewise bounded. */
  async send<T>(command: (client: Redis) => Promise<T>): Promise<T> {
    if (this.client.status !== 'ready') await this.ready();
    return await this.bounded(() => command(this.client));
  }

  async close(): Promise<void> {
    for (const [event, handler] of Object.entries(this.handlers)) this.client.off(event, handler);
    this.settleQueue();
    if (!this.owned) return;
    // A late error of a closing client has nobody to go to.
    this.client.on('error', () => undefined);
    await this.bounded(() => this.client.quit()).catch(() => undefined);
    this.client.disconnect();
  }

  /**
   * Waits for a connection, but not longer than for a reply: the offline queue of ioredis, which has no bound in
   * time, is never used.
   */
  private async ready(): Promise<void> {
    if (this.client.status === 'wait') this.client.connect().catch(() => undefined);
    if (this.client.status !== 'end') {
      await new Promise<void>((resolve) => {
        const settle = () => {
          clearTimeout(timer);
          this.queueing.delete(settle);
          resolve();
        };
        const timer = setTimeout(settle, this.commandTimeout);
        this.queueing.add(settle);
      });
    }
    if (this.client.status !== 'ready') throw new NotConnected(this.client.status, this.lastError);
  }

  /** A master that has been demoted: its name or address may lead to the new one by now, its connection never will. */
  private leaveReplica(error: unknown): void {
    if (!this.owned || performance.now() - this.leftReplicaAt < REPLICA_PAUSE) return;
    this.leftReplicaAt = performance.now();
    this.lastError = error;
    this.client.disconnect(true);
  }

  private settleQueue(): void {
    for (const settle of [...this.queueing]) settle();
  }

  private bounded<T>(send: (over: () => boolean) => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      let over = false;
      // Sent first: whoever waits for what it brings need not wait for this timer, too.
      const sent = send(() => over);
      const timer = setTimeout(() => {
        // A process that was busy or stopped finds its timers due before it reads: a reply that is already here counts.
        setImmediate(() => {
          over = true;
          reject(new CommandTimeout(this.commandTimeout));
        });
      }, this.commandTimeout);
      sent.then(
        (reply) => {
          clearTimeout(timer);
          resolve(reply);
        },
        (error: unknown) => {
          clearTimeout(timer);
          reject(error instanceof Error ? error : new Error(String(error)));
        },
      );
    });
  }

  private changed(connected: boolean): void {
    const before = this.connected;
    this.connected = connected;
    if (connected === before) return;
    const first = connected && before === undefined;
    const error = connected ? undefined : this.lastError;
    for (const listener of this.listeners) listener({ node: this.node, connected, first, error });
  }
}
