import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { isMessage, replyEnd } from './resp.js';

export type Direction = 'requests' | 'replies';

/** Of the messages of subscriptions; reordered ones swap places in pairs. */
export type MessageFate = 'delivered' | 'dropped' | 'duplicated' | 'reordered';

/** What happens to the bytes of all connections of a proxy at present. */
export interface Weather {
  readonly delay: Record<Direction, number>;
  readonly drop: Record<Direction, boolean>;
  messages: MessageFate;
  /** Bytes of replies until the next cut. */
  replyBudget: number;
}

/** One client's connection, and the one to the server that belongs to it. */
export class TcpLink {
  /** Whether bytes have been swallowed. */
  gap = false;
  private isForgotten = false;
  /** What has come in and not gone out yet. */
  readonly underway: Record<Direction, number> = { requests: 0, replies: 0 };
  private readonly server: Socket;
  private readonly tail: Record<Direction, Promise<void>> = {
    requests: Promise.resolve(),
    replies: Promise.resolve(),
  };
  private partialReply = Buffer.alloc(0);
  /** A message that the next one overtakes. */
  private overtaken: Buffer | undefined;

  constructor(
    readonly client: Socket,
    targetPort: number,
    private readonly weather: Weather,
    onClose: () => void,
  ) {
    this.server = connect({ port: targetPort, host: '127.0.0.1', noDelay: true });
    client.on('data', (bytes: Buffer) => {
      this.carry('requests', () => this.server.write(bytes));
    });
    this.server.on('data', (bytes: Buffer) => {
      for (const reply of this.wholeReplies(bytes)) {
        this.carry('replies', () => {
          this.deliver(reply);
        });
      }
    });
    for (const socket of [client, this.server]) {
      socket.on('error', () => undefined);
      socket.on('close', () => {
        if (client.closed && this.server.closed) onClose();
      });
    }
    // What one side said before it left still reaches the other.
    client.on('close', () => void this.tail.requests.then(() => this.server.end()));
    this.server.on('close', () => void this.tail.replies.then(() => client.end()));
  }

  /** Nothing goes through any more, and neither side hears of it. Not even the end of a connection is answered. */
  forget(): void {
    this.isForgotten = true;
    this.client.pause();
    this.server.pause();
  }

  cut(): void {
    this.client.destroy();
    this.server.destroy();
  }

  /** Keeps the order, whatever the delays are. */
  private carry(direction: Direction, deliver: () => void): void {
    const due = performance.now() + this.weather.delay[direction];
    this.underway[direction]++;
    this.tail[direction] = this.tail[direction].then(async () => {
      const wait = due - performance.now();
      if (wait > 0) await sleep(wait, undefined, { ref: false });
      this.underway[direction]--;
      if (this.isForgotten || this.weather.drop[direction]) this.gap = true;
      else deliver();
    });
  }

  private deliver(reply: Buffer): void {
    if (!isMessage(reply)) this.write(reply);
    else for (const message of this.fateOf(reply)) this.write(message);
  }

  private fateOf(message: Buffer): Buffer[] {
    const { overtaken } = this;
    this.overtaken = undefined;
    const late = overtaken === undefined ? [] : [overtaken];
    switch (this.weather.messages) {
      case 'dropped':
        return late;
      case 'duplicated':
        return [...late, message, message];
      case 'reordered':
        if (overtaken === undefined) this.overtaken = message;
        return overtaken === undefined ? [] : [message, overtaken];
      case 'delivered':
        return [...late, message];
    }
  }

  private write(reply: Buffer): void {
    const { client, weather } = this;
    if (!client.writable) return;
    const bytes = reply.subarray(0, weather.replyBudget);
    weather.replyBudget -= bytes.length;
    if (weather.replyBudget > 0) {
      client.write(bytes);
    } else {
      weather.replyBudget = Infinity;
      client.end(bytes, () => {
        this.cut();
      });
    }
  }

  /** Replies are split here and not where they are judged, so that a change of weather never meets half a reply. */
  private *wholeReplies(bytes: Buffer): Generator<Buffer> {
    this.partialReply = Buffer.concat([this.partialReply, bytes]);
    let start = 0;
    for (let end; (end = replyEnd(this.partialReply, start)) !== undefined; start = end) {
      yield this.partialReply.subarray(start, end);
    }
    this.partialReply = this.partialReply.subarray(start);
  }
}
