import type { Cluster } from 'ioredis';
import type { ConnectionChange } from '../../../store/store-health.js';
import { within } from './bounded.js';
import { listen } from './client-events.js';
import { ConnectionState } from './connection-state.js';
import type { ServerConnection } from './connection.js';
import type { AcquisitionGuard, Argument, Receipt } from '../commands/command.js';
import type { Deployment } from './deployment.js';
import { directCommand } from '../commands/direct-command.js';
import { isAlive, NodeConnections, PAUSE } from './node-connections.js';
import { isWithheld, NotConnected, replyCode } from './redis-errors.js';
import { isSharded, OUTDATED } from './sharding.js';
import type { Script } from '../commands/script.js';
import { slotOf } from './slots.js';
import { monotonicTime, sleep } from '../../../runtime/runtime.js';

/**
 * Runs commands on the masters of a cluster. The client knows which node has which slot and keeps a connection to each. This
 * class decides which command to send again, and to which node. ioredis would do that without a bound in time, and would
 * repeat commands that may have arrived: an acquisition could come after its own release.
 */
export class ClusterConnection implements Deployment {
  readonly isCluster = true;
  private sharding: boolean | undefined;
  private learning: Promise<void> | undefined;
  private readonly servers: NodeConnections;
  private readonly state: ConnectionState;
  private readonly changeListeners: ((change: ConnectionChange) => void)[] = [];
  private readonly stopListening: () => void;
  /** The slots that a node has answered ASK for, and when. */
  private readonly movedAt = new Map<number, number>();

  constructor(
    readonly client: Cluster,
    readonly node: string,
    private readonly commandTimeout: number,
    /** The client belongs to this library, which closes it and listens to its errors. */
    private readonly owned: boolean,
  ) {
    const state = new ConnectionState(node);
    state.onChange(this.report);
    this.state = state;
    this.servers = new NodeConnections(client, commandTimeout, owned, state, this.report);
    const listeners = {
      connect: () => {
        if (client.options.enableReadyCheck === true) this.lookAtReadyCheck();
      },
      ready: () => {
        state.settle();
        state.set(true);
      },
      close: () => {
        state.set(false);
      },
      end: () => {
        state.settle();
      },
      refresh: () => {
        this.servers.forgetDeparted();
      },
      error: (error: unknown) => {
        state.failed(error);
      },
      'node error': (error: unknown, key: unknown) => {
        this.servers.failed(String(key), error);
      },
    };
    this.stopListening = listen(client, listeners, owned);
  }

  get keyPrefix(): string {
    return this.client.options.keyPrefix ?? '';
  }

  get sharded(): boolean {
    return this.sharding === true;
  }

  onChange(listener: (change: ConnectionChange) => void): void {
    this.changeListeners.push(listener);
  }

  readonly report = (change: ConnectionChange): void => {
    for (const listener of this.changeListeners) listener(change);
  };

  groupOf(key: string): number {
    return slotOf(this.keyPrefix + key);
  }

  nodeOf(key: string): ServerConnection | undefined {
    const slot = this.groupOf(key);
    const movedAt = this.movedAt.get(slot);
    // A slot that is being moved is at two nodes, and only the commands find out which one has the key.
    if (movedAt !== undefined && monotonicTime() - movedAt < 2 * this.commandTimeout) return undefined;
    this.movedAt.delete(slot);
    return this.ownerOf(slot);
  }

  generationOf(key: string): number {
    return this.ownerOf(this.groupOf(key))?.generationOf() ?? 0;
  }

  async run(
    script: Script,
    keys: readonly string[],
    args: readonly Argument[],
    acquisition?: AcquisitionGuard,
    receipt?: Receipt,
  ): Promise<unknown> {
    if (this.client.status !== 'ready' || this.sharding === undefined) await this.learnSharding();
    // A node that gives no answer to that question may have taken as long as a command.
    const until = monotonicTime() + this.commandTimeout;
    const slot = this.groupOf(keys[0] ?? '');
    let asked: ServerConnection | undefined;
    for (let tries = 0; ; tries++) {
      const node = asked ?? this.ownerOf(slot);
      try {
        if (node === undefined) throw new NotConnected('no node has the slot', this.state.lastError);
        const sending = { group: slot, until, asking: asked !== undefined, isAlone: tries > 0 };
        const sent = this.prefixed(keys, node);
        const reply = await node.run(script, sent, args, acquisition, receipt, sending);
        // The release of this acquisition went to the present node of the lock, and could not wait for this answer.
        if (acquisition?.unwanted === true && node !== this.ownerOf(slot))
          throw new Error('the slot has moved meanwhile');
        return reply;
      } catch (error) {
        // No connection follows if the application has ended its client.
        const mayFollow = acquisition?.unwanted !== true && isAlive(this.client.status);
        const again = mayFollow && monotonicTime() < until - PAUSE;
        const code = replyCode(error);
        asked = undefined;
        // The slot is being moved, or has been moved. The nodes agree on that one after the other.
        const elsewhere = code === 'MOVED' || code === 'ASK' || code === 'TRYAGAIN';
        if (code === undefined || OUTDATED.has(code)) this.look();
        // A command that has not been sent, or has certainly not been carried out, may be sent again.
        if (!again || !(elsewhere || error instanceof NotConnected)) throw error;
        if (code === 'MOVED') await this.learnSlot(keys[0] ?? '', until);
        if (code === 'ASK') this.movedAt.set(slot, monotonicTime());
        if (code === 'ASK') asked = await this.named((error as Error).message, keys[0] ?? '', until);
        if (tries > 0 || code === undefined) await sleep(PAUSE);
      }
    }
  }

  /** The connection to the master of a slot; undefined while no node is known to be that master. */
  ownerOf(slot: number): ServerConnection | undefined {
    return this.servers.ownerOf(slot);
  }

  /** Whether a node has slots, as far as the client knows. */
  isMaster(node: string): boolean {
    return this.servers.isMaster(node);
  }

  /** Waits until the slots are known, but not longer than for a reply. */
  async ready(): Promise<void> {
    const { client, state } = this;
    if (client.status === 'ready') return;
    if (client.status === 'wait') client.connect().catch(() => undefined);
    if (isAlive(client.status) && state.refusal === undefined) await state.news(this.commandTimeout);
    if ((client.status as string) !== 'ready')
      throw state.refusal ?? new NotConnected(client.status, state.lastError);
  }

  async nodes(): Promise<readonly ServerConnection[]> {
    await this.ready();
    return await this.servers.masters();
  }

  async refresh(): Promise<void> {
    if (this.client.status !== 'ready') return;
    // Finds out whether the connections have been dropped while they were idle. The client itself would not.
    await this.ownerOf(0)
      ?.send((node) => node.ping())
      .catch(() => undefined);
    await within(this.commandTimeout, () => this.servers.lookUp()).catch(() => undefined);
  }

  /** Asks the client to look up which node has which slot. The client does so once at a time. */
  look(): void {
    this.servers.look();
  }

  /** Finds out `sharded`. A node that gives no answer does not count: it has no messages to send either. */
  learnSharding(): Promise<void> {
    this.learning ??= this.askForSharding().finally(() => {
      this.learning = undefined;
    });
    return this.learning;
  }

  async close(): Promise<void> {
    this.stopListening();
    this.state.settle();
    this.servers.detach();
    if (!this.owned) return;
    // A late error of a closing client has no receiver.
    this.client.on('error', () => undefined);
    await within(this.commandTimeout, () => this.client.quit()).catch(() => undefined);
    this.client.disconnect();
  }

  private async askForSharding(): Promise<void> {
    await this.ready();
    if (this.sharding !== undefined) return;
    this.sharding = await isSharded(await this.nodes(), this.state.lastError);
  }

  /** For a client of the application, which asks the same before it becomes ready, and does not report a refusal. */
  private lookAtReadyCheck(): void {
    within(this.commandTimeout, () => this.client.cluster('INFO')).catch((error: unknown) => {
      if (isWithheld(error) && this.client.status !== 'ready') this.state.failed(error);
    });
  }

  /** The client learns the location of a key when it is redirected itself. */
  private async learnSlot(key: string, until: number): Promise<void> {
    const question = () => directCommand(this.client, 'eval')('return 0', 1, key);
    await within(Math.max(1, until - monotonicTime()), question).catch(() => undefined);
  }

  /** The node to which a slot is on its way. That node may have no slot yet. */
  private async named(message: string, key: string, until: number): Promise<ServerConnection | undefined> {
    const address = message.split(' ')[2] ?? '';
    const { natMap } = this.client.options;
    const mapped = typeof natMap === 'function' ? natMap(address) : natMap?.[address];
    const name = mapped == null ? address : `${mapped.host}:${String(mapped.port)}`;
    const known = this.servers.to(name);
    if (known !== undefined) return known;
    await this.learnSlot(key, until);
    return this.servers.to(name);
  }

  /** The client puts its prefix before the keys of its own commands, but not before the keys of a node's commands. */
  private prefixed(keys: readonly string[], { keyPrefix }: ServerConnection): readonly string[] {
    return keyPrefix === this.keyPrefix ? keys : keys.map((key) => this.keyPrefix + key);
  }
}
