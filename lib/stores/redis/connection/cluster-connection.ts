import type { Cluster, Redis } from 'ioredis';
import type { ConnectionChange } from '../../../port/store-health.js';
import { within } from './bounded.js';
import { listen } from './client-events.js';
import { ConnectionState } from './connection-state.js';
import { ServerConnection } from './connection.js';
import type { AcquisitionGuard, Argument, Command, Receipt } from '../commands/command.js';
import type { Deployment } from './deployment.js';
import { isPermanent, isWithheld, lacksEvalsha, NotConnected, replyCode } from './redis-errors.js';
import { codeOf } from '../commands/replies.js';
import type { Script } from '../commands/script.js';
import { slotOf } from './slots.js';
import type { Succession } from './succession.js';
import { monotonicTime, sleep } from '../../../lock.runtime.js';

/** ms between looks at a cluster that is changing. */
export const PAUSE = 50;

/** Answers after which the node may not be the right one any more. */
const OUTDATED = new Set(['CLUSTERDOWN', 'LOADING', 'MASTERDOWN', 'READONLY']);

/** Answers that send a command to another node, or once more. */
const ELSEWHERE = new Set(['ASK', 'MOVED', 'NOSCRIPT', 'TRYAGAIN']);

/**
 * Runs commands on the masters of a cluster. The client knows which node has which slot and keeps a connection to each. This
 * class decides which command to send again, and to which node. ioredis would do that without a bound in time, and would
 * repeat commands that may have arrived: an acquisition could come after its own release.
 */
export class ClusterConnection implements Deployment {
  readonly isCluster = true;
  private sharding: boolean | undefined;
  private learning: Promise<void> | undefined;
  private readonly connections = new Map<string, ServerConnection>();
  private readonly states = new Map<string, ConnectionState>();
  private readonly state: ConnectionState;
  private readonly changeListeners: ((change: ConnectionChange) => void)[] = [];
  private readonly stopListening: () => void;
  private lookedAt = -Infinity;
  private closed = false;
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
        this.forgetDeparted();
      },
      error: (error: unknown) => {
        state.failed(error);
      },
      'node error': (error: unknown, key: unknown) => {
        const name = String(key);
        // A node that lets this client in may still refuse to list the slots.
        if (this.connections.get(name)?.client.status !== 'ready') this.stateOf(name).failed(error);
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
    const until = monotonicTime() + this.commandTimeout;
    if (this.client.status !== 'ready' || this.sharding === undefined) await this.learnSharding();
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

  runEach(script: Script, commands: readonly Command[]): readonly Promise<unknown>[] {
    const shares = new Map<ServerConnection | undefined, Command[]>();
    const places = commands.map((command) => {
      const node = this.ownerOf(this.groupOf(command.keys[0] ?? ''));
      const share = shares.get(node) ?? [];
      shares.set(node, share);
      return { node, index: share.push(command) - 1, command };
    });
    const replies = new Map(
      [...shares].map(([node, share]) => {
        const reply = node?.pipeline(
          script,
          share.map((command) => ({ ...command, keys: this.prefixed(command.keys, node) })),
        );
        return [
          node,
          reply ?? Promise.reject(new NotConnected('no node has the slot', this.state.lastError)),
        ];
      }),
    );
    return places.map(async ({ node, index, command: { keys, args, receipt } }) => {
      let reply: unknown;
      try {
        reply = (await replies.get(node))?.[index];
      } catch (error) {
        if (!(error instanceof NotConnected)) {
          this.look();
          throw error;
        }
        reply = error;
      }
      if (!(reply instanceof Error)) return reply;
      const code = replyCode(reply) ?? '';
      if (OUTDATED.has(code)) this.look();
      // The command has certainly not been carried out: the path of a single command leads to the right node.
      if (reply instanceof NotConnected || lacksEvalsha(reply) || ELSEWHERE.has(code)) {
        return await this.run(script, keys, args, undefined, receipt);
      }
      throw reply;
    });
  }

  /** The connection to the master of a slot; undefined while no node is known to be that master. */
  ownerOf(slot: number): ServerConnection | undefined {
    const key = this.client.slots[slot]?.[0];
    return key === undefined ? undefined : this.connectionTo(key);
  }

  /** Whether a node has slots, as far as the client knows. */
  isMaster(node: string): boolean {
    return this.client.slots.some(([master]) => master === node);
  }

  async nodes(): Promise<readonly ServerConnection[]> {
    await this.ready();
    return [...this.masters()].flatMap((key) => this.connectionTo(key) ?? this.connections.get(key) ?? []);
  }

  async refresh(): Promise<void> {
    const refreshed = (): Promise<void> =>
      new Promise((resolve) => {
        this.client.refreshSlotsCache(() => {
          resolve();
        });
      });
    if (this.client.status !== 'ready') return;
    // Finds out whether the connections have been dropped while they were idle. The client itself would not.
    await this.ownerOf(0)
      ?.send((node) => node.ping())
      .catch(() => undefined);
    await within(this.commandTimeout, refreshed).catch(() => undefined);
  }

  /** Asks the client to look up which node has which slot. The client does so once at a time. */
  look(): void {
    if (this.client.status !== 'ready' || monotonicTime() - this.lookedAt < PAUSE) return;
    this.lookedAt = monotonicTime();
    this.client.refreshSlotsCache();
  }

  /** Finds out `sharded`. A node that gives no answer does not count: it has no messages to send either. */
  learnSharding(): Promise<void> {
    this.learning ??= this.askForSharding().finally(() => {
      this.learning = undefined;
    });
    return this.learning;
  }

  async close(): Promise<void> {
    this.closed = true;
    this.stopListening();
    this.state.settle();
    for (const connection of this.connections.values()) connection.detach();
    if (!this.owned) return;
    // A late error of a closing client has no receiver.
    this.client.on('error', () => undefined);
    await within(this.commandTimeout, () => this.client.quit()).catch(() => undefined);
    this.client.disconnect();
  }

  private async askForSharding(): Promise<void> {
    await this.ready();
    if (this.sharding !== undefined) return;
    const answers = await Promise.allSettled(
      (await this.nodes()).map(async (node) =>
        codeOf(await node.send((client) => client.call('SPUBLISH', 'lock_sharding', '')), 0, Infinity),
      ),
    );
    const known = answers.flatMap((answer) => {
      if (answer.status === 'fulfilled') return true;
      const code = replyCode(answer.reason);
      // A node that does not know the command says ERR. A user that may not use it does without it.
      return code === undefined || OUTDATED.has(code) ? [] : code !== 'ERR' && code !== 'NOPERM';
    });
    if (known.length === 0) {
      const reasons = answers.map((answer) =>
        answer.status === 'rejected' ? (answer.reason as Error) : undefined,
      );
      throw reasons.find(isPermanent) ?? new NotConnected('no node answers', this.state.lastError);
    }
    this.sharding = known.every(Boolean);
  }

  private async ready(): Promise<void> {
    const { client, state } = this;
    if (client.status === 'ready') return;
    if (client.status === 'wait') client.connect().catch(() => undefined);
    if (isAlive(client.status) && state.refusal === undefined) await state.news(this.commandTimeout);
    if ((client.status as string) !== 'ready')
      throw state.refusal ?? new NotConnected(client.status, state.lastError);
  }

  private masters(): Set<string> {
    return new Set(this.client.slots.flatMap(([master]) => master ?? []));
  }

  /** For a client of the application, which asks the same before it becomes ready, and does not report a refusal. */
  private lookAtReadyCheck(): void {
    within(this.commandTimeout, () => this.client.cluster('INFO')).catch((error: unknown) => {
      if (isWithheld(error) && this.client.status !== 'ready') this.state.failed(error);
    });
  }

  /** The client learns the location of a key when it is redirected itself. */
  private async learnSlot(key: string, until: number): Promise<void> {
    const question = () => this.client.eval('return 0', 1, key);
    await within(Math.max(1, until - monotonicTime()), question).catch(() => undefined);
  }

  /** The node to which a slot is on its way. That node may have no slot yet. */
  private async named(message: string, key: string, until: number): Promise<ServerConnection | undefined> {
    const address = message.split(' ')[2] ?? '';
    const { natMap } = this.client.options;
    const mapped = typeof natMap === 'function' ? natMap(address) : natMap?.[address];
    const name = mapped == null ? address : `${mapped.host}:${String(mapped.port)}`;
    const known = this.connectionTo(name);
    if (known !== undefined) return known;
    await this.learnSlot(key, until);
    return this.connectionTo(name);
  }

  /**
   * The client makes another connection to a node only when it looks at the slots, and looks over any of its connections. If
   * one has been dropped, the others are asked for a sign of life, so that it looks over none that is dropped, too.
   */
  private successionOf(key: string, client: Redis): Succession<ServerConnection> {
    return {
      onSilence: () => {
        for (const node of this.client.nodes()) {
          if (node === client || node.status !== 'ready') continue;
          const asked = this.connectionTo(keyOf(node))?.send((other) => other.ping());
          asked?.catch(() => undefined);
        }
      },
      next: async (until) => {
        const end = Math.min(until, monotonicTime() + this.commandTimeout);
        for (;;) {
          this.look();
          const next = this.connectionTo(key);
          if (next !== undefined) return next;
          if (monotonicTime() > end - PAUSE) throw new NotConnected(client.status, this.state.lastError);
          await sleep(PAUSE);
        }
      },
    };
  }

  /** Of several connections to one node, the one that the client uses now. */
  private connectionTo(key: string): ServerConnection | undefined {
    const known = this.connections.get(key);
    if (known !== undefined && isAlive(known.client.status)) return known;
    const client = this.client.nodes().find((node) => keyOf(node) === key && isAlive(node.status));
    // After `close` nothing would stop listening to a node of the application's client.
    if (client === undefined || this.closed) return undefined;
    known?.detach();
    const state = this.stateOf(key);
    const succession = this.owned ? this.successionOf(key, client) : undefined;
    const connection = new ServerConnection(client, key, this.commandTimeout, false, state, succession);
    this.connections.set(key, connection);
    return connection;
  }

  /** If nodes come back under other addresses, as on Kubernetes, more and more of them have left. */
  private forgetDeparted(): void {
    for (const [key, connection] of this.connections) {
      if (connection.client.status !== 'end' || this.isMaster(key)) continue;
      connection.detach();
      this.connections.delete(key);
    }
    for (const key of this.states.keys())
      if (!this.connections.has(key) && !this.isMaster(key)) this.states.delete(key);
  }

  private stateOf(key: string): ConnectionState {
    let state = this.states.get(key);
    if (state === undefined) {
      state = new ConnectionState(key);
      state.onChange((change) => {
        // A node that has left the cluster is no outage.
        if (change.connected || this.isMaster(key)) this.report(change);
      });
      this.states.set(key, state);
    }
    return state;
  }

  /** The client puts its prefix before the keys of its own commands, but not before the keys of a node's commands. */
  private prefixed(keys: readonly string[], { keyPrefix }: ServerConnection): readonly string[] {
    return keyPrefix === this.keyPrefix ? keys : keys.map((key) => this.keyPrefix + key);
  }
}

const keyOf = ({ options: { host, port } }: Redis): string => `${String(host)}:${String(port)}`;

/** A cluster that the application has disconnected may stay at `close`, without ever reaching `end`. */
const isAlive = (status: string): boolean => !['disconnecting', 'close', 'end'].includes(status);
