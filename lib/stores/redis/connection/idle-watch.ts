import type { Redis } from 'ioredis';
import { afterInput, clearTimer, idle, monotonicTime, setTimer } from '../../../runtime/runtime.js';

/** ms without a command, after which a connection counts as idle. */
const IDLE = 250;

/** The same, after which a server may end the connection. Its `timeout` is a number of seconds. */
const LONG_IDLE = 1_000;

/** The least time, ms, for which the first command after that may wait for a sign of life: long for most networks. */
const SIGN_OF_LIFE = 1_000;

/**
 * The most of the time that a command has for its answer: some is left in which it is asked again over the next connection. The
 * wait for the last answer may have been long by chance, as in a busy process.
 */
const MOST = 0.95;

/** ms of such a wait after which other connections are asked for a sign of life, too. */
const SILENCE = 250;

/**
 * The time of one command and its answer, over all connections to a node. A slow network, or a slow server, is as silent as
 * a connection that was dropped. So after a long wait, with an answer or without one, the next one may take twice as long.
 */
export class RoundTrip {
  /** ms for which an idle connection may be silent. */
  longest = SIGN_OF_LIFE;

  took(time: number): void {
    this.longest = Math.max(SIGN_OF_LIFE, 2 * time);
  }
}

/**
 * Finds out that an idle connection has been dropped without a word, as firewalls and address translation do. No packet
 * says so: the next command gets no answer. A busy connection is left to the timeout of its socket, because its silence
 * rather means that the server stands still.
 */
export class IdleWatch {
  private askedAt = -Infinity;
  /** Commands whose answers the server may hold back. While there is one, its silence says nothing. */
  private underway = 0;
  /** Other commands. */
  private unanswered = 0;
  /** When a command left that had no other one before it, and what had been read by then. */
  private first:
    { readonly sentAt: number; readonly stream: Redis['stream']; readonly read: number } | undefined;
  private timer: NodeJS.Timeout | undefined;
  private bytesRead = 0;

  constructor(
    private readonly client: Redis,
    private readonly roundTrip: RoundTrip,
    /** ms */
    private readonly commandTimeout: number,
    /** @param silence ms for which nothing has come back */
    private readonly onDropped: (silence: number) => void,
    private readonly onSilence: () => void = () => undefined,
  ) {}

  /** The last command, which has its answer, was sent long ago. */
  get isIdle(): boolean {
    const isUsed = this.unanswered > 0 || this.underway > 0;
    return !isUsed && monotonicTime() - this.askedAt >= LONG_IDLE;
  }

  /** A command leaves. */
  asked(): void {
    const before = this.askedAt;
    this.askedAt = monotonicTime();
    const isOnly = this.unanswered++ === 0;
    if (this.underway > 0 || this.askedAt - before < IDLE) return;
    const { stream } = this.client;
    const { bytesRead } = stream;
    if (isOnly) this.first = { sentAt: this.askedAt, stream, read: bytesRead };
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
    const longest = Math.min(this.roundTrip.longest, Math.max(SIGN_OF_LIFE, MOST * this.commandTimeout));
    const { askedAt } = this;
    unlessAnswered(SILENCE, () => {
      // In a busy process, the first timer is late.
      unlessAnswered(Math.max(1, askedAt + longest - monotonicTime()), () => {
        this.onDropped(longest);
      });
      this.onSilence();
    });
  }

  /** A command has its answer, or is given up. */
  answered(): void {
    this.unanswered--;
    if (this.first === undefined) return;
    const { sentAt, stream, read } = this.first;
    const time = monotonicTime() - sentAt;
    // What this process answers itself, or a connection that is cut, tells nothing of the time on the network.
    const tells = stream.bytesRead !== read || time >= SIGN_OF_LIFE;
    if (tells) this.roundTrip.took(time);
    if (tells || this.unanswered === 0) this.first = undefined;
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
