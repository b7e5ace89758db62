import type { Redis } from 'ioredis';
import { afterInput, idle, monotonicTime, setTimer } from '../../lock.runtime.js';

/** ms without a command, after which a connection counts as idle. */
const IDLE = 250;

/** ms for which the first command after that may wait for a sign of life: long for any network. */
export const SIGN_OF_LIFE = 1_000;

/**
 * Finds out that an idle connection has been dropped without a word, as firewalls and address translation do. No packet
 * says so: the next command gets no answer. A busy connection is left to the timeout of its socket, because its silence
 * rather means that the server stands still.
 */
export class IdleWatch {
  private askedAt = -Infinity;

  constructor(
    private readonly client: Redis,
    private readonly onDropped: () => void,
  ) {}

  /** A command leaves. */
  asked(): void {
    const before = this.askedAt;
    this.askedAt = monotonicTime();
    if (this.askedAt - before < IDLE) return;
    const { stream } = this.client;
    const { bytesRead } = stream;
    const look = () => {
      if (this.client.stream === stream && this.client.status === 'ready' && stream.bytesRead === bytesRead)
        this.onDropped();
    };
    // What has arrived while the process was busy is read first.
    idle(
      setTimer(() => {
        afterInput(look);
      }, SIGN_OF_LIFE),
    );
  }
}
