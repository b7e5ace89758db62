import type { ServerConnection } from './connection.js';

/** What follows a connection that was dropped while it was idle. */
export interface Succession {
  /** The first command after a pause has no answer yet. Other connections may have been dropped at the same time. */
  onSilence?(): void;
  /** Waits for the connection that follows. Left out where a client connects again by itself. */
  next?(until: number): Promise<ServerConnection>;
}

/** Of a client that connects again by itself. */
export const RECONNECTS: Succession = {};
