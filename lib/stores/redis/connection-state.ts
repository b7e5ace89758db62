import type { ConnectionChange } from '../lock-store.js';

/** Whether a node is connected, for those who want to hear when that changes. */
export class ConnectionState {
  /** Why it is not. */
  lastError: unknown;
  private connected: boolean | undefined;
  private readonly listeners: ((change: ConnectionChange) => void)[] = [];

  constructor(private readonly node: string) {}

  onChange(listener: (change: ConnectionChange) => void): void {
    this.listeners.push(listener);
  }

  failed(error: unknown): void {
    // ioredis attaches what it has sent, and for a handshake that is the password.
    if (error instanceof Error) Reflect.deleteProperty(error, 'command');
    this.lastError = error;
  }

  set(connected: boolean): void {
    const before = this.connected;
    this.connected = connected;
    if (connected === before) return;
    const first = connected && before === undefined;
    const error = connected ? undefined : this.lastError;
    for (const listener of this.listeners) listener({ node: this.node, connected, first, error });
  }
}
