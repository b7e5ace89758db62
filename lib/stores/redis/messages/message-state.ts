import type { ConnectionChange } from '../../../store/store-health.js';
import { ConnectionState } from '../connection/connection-state.js';
import type { Server } from '../connection/deployment.js';

/**
 * The state of a connection for messages. That it is lost is not worth a report: waiters poll until it is back. A refusal
 * is, because it does not pass by itself, unless the connection for commands is away as well.
 */
export class MessageState extends ConnectionState {
  private isReported = false;

  constructor(
    private readonly server: Pick<Server, 'node' | 'isDown'>,
    private readonly deployment: { report(change: ConnectionChange): void },
  ) {
    super(server.node);
  }

  override failed(error: unknown): void {
    super.failed(error);
    const { refusal } = this;
    if (refusal === undefined || this.isReported || this.server.isDown) return;
    this.isReported = true;
    this.tell(false, refusal);
  }

  override set(connected: boolean): void {
    super.set(connected);
    if (!connected || !this.isReported) return;
    this.isReported = false;
    this.tell(true);
  }

  /** The connection for commands tells the same. */
  override watched(): void {
    // Nothing to do.
  }

  private tell(connected: boolean, error?: Error): void {
    this.deployment.report({ node: `the messages of ${this.server.node}`, connected, error });
  }
}
