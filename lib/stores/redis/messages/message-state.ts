import { now } from '../../../runtime/clock.js';
import type { ConnectionChange } from '../../../store/store-health.js';
import { ConnectionState } from '../connection/connection-state.js';
import type { Server } from '../connection/deployment.js';

/** ms after which an absence is reported. */
const LONG = 5_000;

/**
 * The state of a connection for messages. A short absence is not worth a report: waiters poll until it is back. A long one
 * is, because processes with messages get the locks before them, and so is a refusal, which does not pass by itself; but not
 * while the connection for commands is away as well.
 */
export class MessageState extends ConnectionState {
  private isReported = false;
  /** The first failure while the connection for commands was there. */
  private awaySince: number | undefined;

  constructor(
    private readonly server: Pick<Server, 'node' | 'isDown'>,
    private readonly deployment: { report(change: ConnectionChange): void },
  ) {
    super(server.node);
  }

  override failed(error: unknown): void {
    super.failed(error);
    this.away();
  }

  override set(connected: boolean): void {
    super.set(connected);
    if (!connected) {
      this.away();
      return;
    }
    this.awaySince = undefined;
    if (!this.isReported) return;
    this.isReported = false;
    this.tell(true);
  }

  /** Called for each attempt that has failed. */
  private away(): void {
    const { refusal, lastError, server } = this;
    this.awaySince = server.isDown ? undefined : (this.awaySince ?? now());
    const isLong = this.awaySince !== undefined && now() - this.awaySince >= LONG;
    if (this.isReported || server.isDown || !(isLong || refusal !== undefined)) return;
    this.isReported = true;
    this.tell(false, refusal ?? (lastError as Error | undefined));
  }

  /** The connection for commands tells the same. */
  override watched(): void {
    // Nothing to do.
  }

  private tell(connected: boolean, error?: Error): void {
    this.deployment.report({ node: `the messages of ${this.server.node}`, connected, error });
  }
}
