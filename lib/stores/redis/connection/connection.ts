import type { Redis } from 'ioredis';
import { monotonicTime } from '../../../runtime/runtime.js';
import { asError } from '../../../runtime/thrown.js';
import type { ConnectionChange } from '../../../store/store-health.js';
import type { AcquisitionGuard, Argument, Receipt } from '../commands/command.js';
import { Evaluator } from '../commands/evaluator.js';
import type { Call } from '../commands/lane.js';
import type { Script } from '../commands/script.js';
import { within } from './bounded.js';
import { ConnectionState } from './connection-state.js';
import type { Deployment, Server } from './deployment.js';
import { TakenBack } from './redis-errors.js';
import { Session } from './session.js';
import type { Succession } from './succession.js';

/** How a cluster sends a command to one of its nodes. */
export interface Sending extends Pick<Call, 'group' | 'until' | 'asking'> {
  /** The command is not sent together with others. */
  readonly isAlone: boolean;
  /** The connection over which it was sent before was dropped while it was idle. */
  readonly isRepeated?: true;
}

const ANYHOW: Sending = { group: 0, until: Infinity, asking: false, isAlone: false };

/**
 * Runs commands over one ioredis client, each with a bounded time. No command is defined on the client, and a client of the
 * application keeps its options and functions. Commands leave in the order of the calls. This allows a release to follow an
 * acquisition of unknown outcome.
 */
export class ServerConnection implements Deployment, Server {
  readonly isCluster = false;
  readonly sharded = false;
  private readonly session: Session;
  private readonly evaluator: Evaluator;

  constructor(
    readonly client: Redis,
    readonly node: string,
    private readonly commandTimeout: number,
    /** As in SessionOptions. */
    private readonly owned: boolean,
    private readonly state = new ConnectionState(node),
    private readonly succession?: Succession<ServerConnection>,
  ) {
    this.session = new Session(client, state, { commandTimeout, owned, succession });
    this.evaluator = new Evaluator(this.session);
    this.session.onClosed = () => {
      this.evaluator.disconnected();
    };
  }

  get keyPrefix(): string {
    return this.client.options.keyPrefix ?? '';
  }

  onChange(listener: (change: ConnectionChange) => void): void {
    this.session.onChange(listener);
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
    this.session.onReconnected = listener;
  }

  /** Gives up the present connection for another one. */
  renew(): void {
    this.session.renew();
  }

  groupOf(): number {
    return 0;
  }

  nodeOf(): this {
    return this;
  }

  generationOf(): number {
    return this.session.generation;
  }

  get isDown(): boolean {
    return this.session.isDown;
  }

  outage(): Error {
    return this.session.outage();
  }

  run(
    script: Script,
    keys: readonly string[],
    args: readonly Argument[],
    acquisition?: AcquisitionGuard,
    receipt?: Receipt,
    sending: Sending = ANYHOW,
  ): Promise<unknown> {
    const { session } = this;
    if (!session.usable) return this.runWhenReady(script, keys, args, acquisition, receipt, sending);
    if (acquisition?.unwanted === true) return Promise.reject(new TakenBack());
    this.sign(receipt);
    const { generation } = session;
    return new Promise((resolve, reject) => {
      const { group, until, asking, isAlone, isRepeated } = sending;
      const failed = (error: unknown) => {
        // Anything but an acquisition may be carried out twice, and after later commands.
        if (acquisition !== undefined || !session.wasDropped(generation) || isRepeated === true)
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

  /** Sends any other command, with the same bound in time. */
  async send<T>(command: (client: Redis) => Promise<T>, isHeldBack = false): Promise<T> {
    const { session } = this;
    if (!session.usable) {
      const present = session.isGone ? await this.present(Infinity) : this;
      if (present !== this) return await present.send(command, isHeldBack);
      await session.ready();
    }
    this.evaluator.flush();
    const { generation } = session;
    const send = () => within(this.commandTimeout, () => command(this.client));
    if (isHeldBack) return await session.during(send);
    session.asked();
    try {
      return await send().finally(() => {
        session.answered();
      });
    } catch (error) {
      if (!session.wasDropped(generation)) throw error;
      const present = await this.present(Infinity);
      await present.session.ready();
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
    this.session.detach();
  }

  private async runWhenReady(
    script: Script,
    keys: readonly string[],
    args: readonly Argument[],
    acquisition: AcquisitionGuard | undefined,
    receipt: Receipt | undefined,
    sending: Sending,
  ): Promise<unknown> {
    const present = this.session.isGone ? await this.present(sending.until) : this;
    if (present !== this) return await present.run(script, keys, args, acquisition, receipt, sending);
    await this.session.ready(Math.max(1, Math.min(this.commandTimeout, sending.until - monotonicTime())));
    return await this.run(script, keys, args, acquisition, receipt, sending);
  }

  /** The connection that follows, or this one. */
  private async present(until: number): Promise<ServerConnection> {
    return (await this.succession?.next?.(until)) ?? this;
  }

  private sign(receipt: Receipt | undefined): void {
    if (receipt === undefined) return;
    receipt.server = this;
    receipt.generation = this.session.generation;
  }
}
