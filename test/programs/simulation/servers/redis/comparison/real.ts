import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { replyEnd } from '../../../../../support/resp.js';

export const written = (command: readonly string[]): Buffer =>
  Buffer.from(
    `*${String(command.length)}\r\n${command.map((text) => `$${String(text.length)}\r\n${text}\r\n`).join('')}`,
    'latin1',
  );

/** A connection to a real server, of which the bytes are seen as they are. */
export class RealConnection {
  private received = Buffer.alloc(0);

  private constructor(private readonly socket: Socket) {
    socket.on('data', (chunk: Buffer) => {
      this.received = Buffer.concat([this.received, chunk]);
    });
  }

  static async open(port: number): Promise<RealConnection> {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    await once(socket, 'connect');
    return new RealConnection(socket);
  }

  /** Sends a command that has so many replies. @returns all that has come up to the last of them */
  async ask(command: readonly string[], replies: number): Promise<string> {
    this.socket.write(written(command));
    return await this.next(replies);
  }

  /** All that has come before the answer to a command that follows. */
  async until(command: readonly string[], answer: string): Promise<string> {
    this.socket.write(written(command));
    for (let seen = ''; ;) {
      const part = await this.next(1);
      if (part === answer) return seen;
      seen += part;
    }
  }

  close(): void {
    this.socket.destroy();
  }

  private async next(replies: number): Promise<string> {
    for (;;) {
      const end = endOf(this.received, replies);
      if (end !== undefined) {
        const text = this.received.toString('latin1', 0, end);
        this.received = this.received.subarray(end);
        return text;
      }
      await once(this.socket, 'data');
    }
  }
}

function endOf(bytes: Buffer, replies: number): number | undefined {
  let end: number | undefined = 0;
  for (let reply = 0; reply < replies && end !== undefined; reply++)
    end = end < bytes.length ? replyEnd(bytes, end) : undefined;
  return end;
}
