import type { Cluster, Redis } from 'ioredis';
import { monotonicTime, sleep } from '../../../runtime/runtime.js';
import type { ConnectionChange } from '../../../store/store-health.js';
import { within } from './bounded.js';
import { isOpen } from './connection-stage.js';
import { ConnectionState } from './connection-state.js';
import { ServerConnection } from './connection.js';
import { NotConnected } from './redis-errors.js';
import type { Succession } from './succession.js';

/** ms between looks at a cluster that is changing. */
export const PAUSE = 50;

/** The connections of a cluster's client to its nodes, each with its state. */
export class NodeConnections {
  private readonly connections = new Map<string, ServerConnection>();
  private readonly states = new Map<string, ConnectionState>();
  private lookedAt = -Infinity;
  private closed = false;

  constructor(
    private readonly client: Cluster,
    private readonly commandTimeout: number,
    /** The client belongs to this library. */
    private readonly owned: boolean,
    private readonly state: ConnectionState,
    private readonly report: (change: ConnectionChange) => void,
  ) {}

  /** The connection to the master of a slot; undefined while no node is known to be that master. */
  ownerOf(slot: number): ServerConnection | undefined {
    const key = this.client.slots[slot]?.[0];
    return key === undefined ? undefined : this.to(key);
  }

  /** Whether a node has slots, as far as the client knows. */
  isMaster(node: string): boolean {
    return this.client.slots.some(([master]) => master === node);
  }

  /** The client makes another connection, in place of one that has ended, only when it looks at the slots. */
  async masters(): Promise<readonly ServerConnection[]> {
    const present = this.names.map((key) => this.to(key));
    if (present.every((connection) => connection !== undefined)) return present;
    await within(this.commandTimeout, () => this.lookUp()).catch(() => undefined);
    return this.names.flatMap((key) => this.to(key) ?? this.connections.get(key) ?? []);
  }

  /** Of several connections to one node, the one that the client uses now. */
  to(key: string): ServerConnection | undefined {
    const known = this.connections.get(key);
    if (known !== undefined && serves(known.client)) return known;
    const client = this.client.nodes().find((node) => keyOf(node) === key && serves(node));
    // After `detach` nothing would stop listening to a node of the application's client.
    if (client === undefined || this.closed) return undefined;
    known?.detach();
    const state = this.stateOf(key);
    const succession = this.owned ? this.successionOf(key, client) : undefined;
    const connection = new ServerConnection(client, key, this.commandTimeout, false, state, succession);
    this.connections.set(key, connection);
    return connection;
  }

  /** A connection to the node could not be made. */
  failed(node: string, error: unknown): void {
    // A node that lets this client in may still refuse to list the slots.
    const client = this.connections.get(node)?.client;
    if (client === undefined || !isOpen(client)) this.stateOf(node).failed(error);
  }

  /** If nodes come back under other addresses, as on Kubernetes, more and more of them have left. */
  forgetDeparted(): void {
    for (const [key, connection] of this.connections) {
      if (serves(connection.client) || this.isMaster(key)) continue;
      connection.detach();
      this.connections.delete(key);
    }
    for (const key of this.states.keys())
      if (!this.connections.has(key) && !this.isMaster(key)) this.states.delete(key);
  }

  /** Leaves the client alone from now on. */
  detach(): void {
    this.closed = true;
    for (const connection of this.connections.values()) connection.detach();
  }

  /** Asks the client to look up which node has which slot. The client does so once at a time. */
  look(): void {
    if (this.client.status !== 'ready' || monotonicTime() - this.lookedAt < PAUSE) return;
    void this.lookUp();
  }

  /** As `look`, at once. Resolves with the answer, or when no node gives one. */
  lookUp(): Promise<void> {
    this.lookedAt = monotonicTime();
    return new Promise((resolve) => {
      this.client.refreshSlotsCache((error) => {
        if (error != null) this.tryUnused();
        resolve();
      });
    });
  }

  /**
   * No node tells the slots: all of them may have other addresses by now. The client looks for the cluster at its first
   * addresses only when it has lost its last node. A node to which it has never connected, as to most replicas, is lost
   * only when that is tried.
   */
  private tryUnused(): void {
    if (this.closed || this.client.status !== 'ready') return;
    for (const node of this.client.nodes()) if (node.status === 'wait') node.connect().catch(() => undefined);
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
          const asked = this.to(keyOf(node))?.send((other) => other.ping());
          asked?.catch(() => undefined);
        }
      },
      next: async (until) => {
        const end = Math.min(until, monotonicTime() + this.commandTimeout);
        for (;;) {
          this.look();
          const next = this.to(key);
          if (next !== undefined) return next;
          if (monotonicTime() > end - PAUSE) throw new NotConnected(client.status, this.state.lastError);
          await sleep(PAUSE);
        }
      },
    };
  }

  /** Of the masters, as far as the client knows. */
  private get names(): string[] {
    return [...new Set(this.client.slots.flatMap(([master]) => master ?? []))];
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
}

const keyOf = ({ options: { host, port } }: Redis): string => `${String(host)}:${String(port)}`;

/** There is a connection to the node, or one is being made. ioredis 5 leaves one that has ended `ready` for ever. */
const serves = (node: Redis): boolean => isOpen(node) || (node.status !== 'ready' && isAlive(node.status));

/** A cluster that the application has disconnected may stay at `close`, without ever reaching `end`. */
export const isAlive = (status: string): boolean => !['disconnecting', 'close', 'end'].includes(status);
