import type { Redis } from 'ioredis';
import type { ConnectionChange } from '../lock-store.js';
import { within } from './bounded.js';
import { ConnectionState } from './connection-state.js';
import type { Acquisition, Argument, Command, Deployment } from './deployment.js';
import { NotConnected, replyCode } from './redis-errors.js';
import type { Script } from './script.js';

/** How a cluster sends a command to one of its nodes. */
interface Sending {
  /** The end of its time, on the monotonic clock. */
  readonly until: number;
  /** The node has been named by ASK: its slot is still on the way there. */
  readonly asking: boolean;
}

let epochs = 0;

/**
 * Commands that leave in one piece: enough to spread the cost of a write, few enough for the server to work at one piece
 * while the next is made. Of 4 to 32, 16 and 24 let 64 loops run fastest.
 */
const PIECE = 16;

/** How often a connection may be given up because it leads to a replica: often no better one is to be had, ms. */
const REPLICA_PAUSE = 5_000;

/** ms until a client that has ended by itself is connected again. */
const REVIVAL = 50;

/**
 * Runs commands over one ioredis client, each with a bounded time. The client is used as it is: no command is
 * defined on it, no option of it is changed. Commands leave in the order of the calls, which is what lets a release
 * follow an acquisition of unknown outcome.
 */
export class RedisConnection implements Deployment {
  readonly isCluster = false;
  readonly sharded = false;
  /** Grows with every lost connection; a command that spans two values may have been sent twice by the client. */
  private leftReplicaAt = -Infinity;
  private epoch = ++epochs;
  private readonly queueing = new Set<() => void>();
  /** Commands that have been sent and not answered. */
  private underway = 0;
  /** The socket that holds back what is written, and how much it holds. */
  private gathering: Redis['stream'] | undefined;
  private gathered = 0;
  private revival: NodeJS.Timeout | undefined;
  private readonly handlers: Readonly<Record<string, (error?: unknown) => void>>;

  constructor(
    readonly client: Redis,
    readonly node: string,
    private readonly commandTimeout: number,
    /** Ours to close, and to hear the errors of. */
    private readonly owned: boolean,
    private readonly state = new ConnectionState(node),
  ) {
    this.handlers = {
      ready: () => {
        this.settleQueue();
        state.set(true);
      },
      close: () => {
        this.epoch = ++epochs;
        state.set(false);
      },
      end: () => {
        this.settleQueue();
        this.revive();
      },
      // Without a listener ioredis prints the error; on the user's own client that is the user's choice.
      ...(owned && {
        error: (error: unknown) => {
          state.failed(error);
        },
      }),
    };
    for (const [event, handler] of Object.entries(this.handlers)) client.on(event, handler);
  }

  get keyPrefix(): string {
    return this.client.options.keyPrefix ?? '';
  }

  onChange(listener: (change: ConnectionChange) => void): void {
    this.state.onChange(listener);
    // A client of the user's may have been connected long before.
    queueMicrotask(() => {
      if (this.client.status === 'ready') this.state.set(true);
    });
  }

  groupOf(): number {
    return 0;
  }

  nodeOf(): this {
    return this;
  }

  epochOf(): number {
    return this.epoch;
  }

  async run(
    script: Script,
    keys: readonly string[],
    args: readonly Argument[],
    acquisition?: Acquisition,
    { until, asking }: Sending = { until: Infinity, asking: false },
  ): Promise<unknown> {
    const time = () => Math.max(1, Math.min(this.commandTimeout, until - performance.now()));
    if (this.client.status !== 'ready') await this.ready(time());
    if (acquisition?.unwanted === true) throw new NotConnected('taken back', undefined);
    this.gather();
    const { epoch } = this;
    const evaluate = asking ? this.ask : this.evaluate;
    this.underway++;
    try {
      const reply = await within(time(), (over) =>
        evaluate('evalsha', script.sha, keys, args).catch((error: unknown) => {
          if (replyCode(error) === 'READONLY') this.leaveReplica(error);
          // Once the time is over a release may have followed, which nothing may come after.
          if (over() || acquisition?.unwanted === true || replyCode(error) !== 'NOSCRIPT') throw error;
          return evaluate('eval', script.source, keys, args);
        }),
      );
      if (acquisition !== undefined && epoch !== this.epoch)
        throw new Error('the connection was lost meanwhile');
      return reply;
    } finally {
      this.underway--;
    }
  }

  runEach(script: Script, commands: readonly Command[]): readonly Promise<unknown>[] {
    return commands.map(({ keys, args }) => this.run(script, keys, args));
  }

  /** In one piece, which costs far less than one by one. Resolves with a reply or an error for each. */
  async pipeline(script: Script, commands: readonly Command[]): Promise<readonly unknown[]> {
    const replies = await this.send((client) => {
      const pipeline = client.pipeline();
      for (const { keys, args } of commands) pipeline.evalsha(script.sha, keys.length, ...keys, ...args);
      return pipeline.exec();
    });
    return commands.map((_, index) => replies?.[index]?.[0] ?? replies?.[index]?.[1]);
  }

  /** Any other command, likewise bounded. */
  async send<T>(command: (client: Redis) => Promise<T>): Promise<T> {
    if (this.client.status !== 'ready') await this.ready(this.commandTimeout);
    return await within(this.commandTimeout, () => command(this.client));
  }

  nodes(): Promise<readonly RedisConnection[]> {
    return Promise.resolve([this]);
  }

  learnSharding(): Promise<void> {
    return Promise.resolve();
  }

  async close(): Promise<void> {
    this.detach();
    if (!this.owned) return;
    // A late error of a closing client has nobody to go to.
    this.client.on('error', () => undefined);
    // One that has never been used would connect to say goodbye.
    if (this.client.status !== 'wait')
      await within(this.commandTimeout, () => this.client.quit()).catch(() => undefined);
    this.client.disconnect();
  }

  /** Leaves the client alone from now on. */
  detach(): void {
    for (const [event, handler] of Object.entries(this.handlers)) this.client.off(event, handler);
    clearTimeout(this.revival);
    this.settleQueue();
  }

  /**
   * Waits for a connection, but not longer than for a reply: the offline queue of ioredis, which has no bound in
   * time, is never used.
   */
  private async ready(time: number): Promise<void> {
    if (this.client.status === 'wait') this.client.connect().catch(() => undefined);
    if (this.client.status !== 'end') {
      await new Promise<void>((resolve) => {
        const settle = () => {
          clearTimeout(timer);
          this.queueing.delete(settle);
          resolve();
        };
        const timer = setTimeout(settle, time);
        this.queueing.add(settle);
      });
    }
    if (this.client.status !== 'ready') throw new NotConnected(this.client.status, this.state.lastError);
  }

  /** A master that has been demoted: its name or address may lead to the new one by now, its connection never will. */
  private leaveReplica(error: unknown): void {
    if (!this.owned || performance.now() - this.leftReplicaAt < REPLICA_PAUSE) return;
    this.leftReplicaAt = performance.now();
    this.state.lastError = error;
    this.client.disconnect(true);
  }

  /**
   * What follows a command that is under way leaves with the rest of its turn of the event loop, or with the rest of a
   * piece: a write to the socket costs as much as a command. A client of the user's is left alone.
   */
  private gather(): void {
    if (!this.owned || this.underway === 0) return;
    const { stream } = this.client;
    if (this.gathering !== stream) {
      this.gathering = stream;
      this.gathered = 0;
      stream.cork();
      process.nextTick(() => {
        this.gathering = undefined;
        stream.uncork();
      });
    } else if (++this.gathered === PIECE) {
      this.gathered = 0;
      stream.uncork();
      stream.cork();
    }
  }

  /**
   * A client that Sentinel tells of a new master while it is asking for the present one ends, and for ioredis that is
   * for good.
   */
  private revive(): void {
    if (!this.owned || this.client.options.sentinels == null) return;
    this.revival = setTimeout(() => {
      this.client.connect().catch(() => undefined);
    }, REVIVAL);
  }

  private settleQueue(): void {
    for (const settle of [...this.queueing]) settle();
  }

  private readonly evaluate = (
    command: 'evalsha' | 'eval',
    text: string,
    keys: readonly string[],
    args: readonly Argument[],
  ): Promise<unknown> => this.client[command](text, keys.length, ...keys, ...args);

  /** ASKING holds for the very next command, so both leave in one piece. */
  private readonly ask: typeof this.evaluate = async (command, text, keys, args) => {
    const replies = await this.client
      .pipeline()
      .asking()
      [command](text, keys.length, ...keys, ...args)
      .exec();
    const [error, reply] = replies?.[1] ?? [];
    if (error != null) throw error;
    return reply;
  };
}
