/** The successor of a connection that was dropped while it was idle. */
export interface Succession<Connection> {
  /** The first command after a pause has no answer yet. Other connections may have been dropped at the same time. */
  onSilence?(): void;
  /** Waits for the connection that follows. Left out if the client connects again by itself. */
  next?(until: number): Promise<Connection>;
}

/** Of a client that connects again by itself. */
export const RECONNECTS: Succession<never> = {};
