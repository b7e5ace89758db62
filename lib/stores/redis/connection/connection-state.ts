import { clearTimer, idle, setTimer } from '../../../runtime/runtime.js';
import type { ConnectionChange } from '../../../store/store-health.js';
import { RoundTrip } from './idle-watch.js';
import { isPermanent, NotAdmitted, replyCode } from './redis-errors.js';

/** ms after the end of an idle connection, within which the next one mostly follows. */
const SOON = 500;

/** Whether a node is connected, why not, and the listeners to a change of that. */
export class ConnectionState {
  readonly roundTrip = new RoundTrip();
  private error: unknown;
  private connected: boolean | undefined;
  private isWatchRefused = false;
  private readonly listeners: ((change: ConnectionChange) => void)[] = [];
  private readonly waiting = new Set<() => void>();

  constructor(private readonly node: string) {}

  get isDown(): boolean {
    return this.connected === false;
  }

  onChange(listener: (change: ConnectionChange) => void): void {
    this.listeners.push(listener);
  }

  /** Why the last attempt to connect has failed. */
  get lastError(): unknown {
    return this.error;
  }

  /** Why the server does not let this client in, if no later attempt can succeed. */
  get refusal(): Error | undefined {
    const { error } = this;
    if (!isPermanent(error)) return undefined;
    return replyCode(error) === undefined ? (error as Error) : new NotAdmitted(error as Error);
  }

  /** Another client makes its first attempt: the server that has refused the former one may let it in. */
  attempted(): void {
    this.error = undefined;
  }

  failed(error: unknown): void {
    this.error = bare(error);
    if (this.refusal === undefined) return;
    this.set(false);
    this.settle();
  }

  set(connected: boolean): void {
    const before = this.connected;
    this.connected = connected;
    if (connected) this.error = undefined;
    if (connected === before) return;
    const first = connected && before === undefined;
    this.report({ node: this.node, connected, first, error: this.error });
  }

  /** As a server does after its `timeout`. It is an outage only if no connection follows soon. */
  endedWhileIdle(): void {
    if (this.connected !== true || this.error !== undefined) {
      this.set(false);
      return;
    }
    this.connected = undefined;
    // An attempt that fails says so itself. A server that loads its data lets none fail.
    const late = () => {
      if (this.connected === undefined) this.set(false);
    };
    idle(setTimer(late, SOON));
  }

  /** Whether the sentinels tell this client of a failover, as long as it is connected. */
  watched(refusal: Error | undefined): void {
    if ((refusal !== undefined) === this.isWatchRefused) return;
    this.isWatchRefused = !this.isWatchRefused;
    const node = `the failover messages of ${this.node}`;
    this.report({ node, connected: refusal === undefined, error: refusal });
  }

  report(change: ConnectionChange): void {
    for (const listener of this.listeners) listener(change);
  }

  /** Resolves when there is something new, and after `time` ms at the latest. */
  news(time: number): Promise<void> {
    return new Promise<void>((resolve) => {
      const settle = () => {
        clearTimer(timer);
        this.waiting.delete(settle);
        resolve();
      };
      const timer = setTimer(settle, time);
      this.waiting.add(settle);
    });
  }

  /** Resolves all `news`, so that their callers look again. */
  settle(): void {
    for (const settle of [...this.waiting]) settle();
  }
}

/**
 * The error without what ioredis attaches: the command that has failed, which for a handshake contains the password. It is a
 * copy, because the application may look at the error as well.
 */
function bare(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  // The error of a cluster: that of its last node.
  if ('lastNodeError' in error && error.lastNodeError instanceof Error) return bare(error.lastNodeError);
  if (!('command' in error)) return error;
  const copy = new Error(error.message);
  copy.name = error.name;
  if (error.stack !== undefined) copy.stack = error.stack;
  return copy;
}
