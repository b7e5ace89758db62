import type { Redis } from 'ioredis';
import { afterInput, clearTimer, idle, monotonicTime, setTimer } from '../../../runtime/runtime.js';

/** ms without a command, after which a connection counts as idle. */
const IDLE = 250;

/** ms for which the first command after that may wait for a sign of life: long for any network. */
export const SIGN_OF_LIFE = 1_000;

/** ms of such a wait after which other connections are asked for a sign of life, too. */
const SILENCE = 250;

/**
 * Finds out that an idle connection has been dropped without a word, as firewalls and address translation do. No packet
 * says so: the next command gets no answer. A busy connection is left to the timeout of its socket, because its silence
 * rather means that the server stands still.
 */
export class IdleWatch {
  private askedAt = -Infinity;
  /** Commands whose answers the server may hold back. While there is one, its silence says nothing. */
  private underway = 0;
  private timer: NodeJS.Timeout | undefined;
  private bytesRead = 0;

  constructor(
    private readonly client: Redis,
    private readonly onDropped: () => void,
    private readonly onSilence: () => void = () => undefined,
  ) {}

  /** A command leaves. */
  asked(): void {
    const before = this.askedAt;
    this.askedAt = monotonicTime();
    if (this.underway > 0 || this.askedAt - before < IDLE) return;
    const { stream } = this.client;
    const { bytesRead } = stream;
    // The stream of another Connector may not count.
    if (!(bytesRead > 0)) return;
    // The watch over an earlier command goes on if that has no answer either.
    if (this.timer !== undefined && bytesRead === this.bytesRead) return;
    this.bytesRead = bytesRead;
    const unlessAnswered = (time: number, callback: () => void): void => {
      const look = () => {
        this.timer = undefined;
        if (this.client.stream === stream && this.client.status === 'ready' && stream.bytesRead === bytesRead)
          callback();
      };
      // Data that arrived while the process was busy are read first.
      this.timer = idle(
        setTimer(() => {
          afterInput(look);
        }, time),
      );
    };
    this.close();
    unlessAnswered(SILENCE, () => {
      unlessAnswered(SIGN_OF_LIFE - SILENCE, this.onDropped);
      this.onSilence();
    });
  }

  /** For a command whose answer the server may hold back. Another command comes before it, and is watched. */
  async during<T>(answer: () => Promise<T>): Promise<T> {
    this.underway++;
    try {
      const reply = await answer();
      this.askedAt = monotonicTime();
      return reply;
    } finally {
      this.underway--;
    }
  }

  close(): void {
    clearTimer(this.timer);
    this.timer = undefined;
  }
}
