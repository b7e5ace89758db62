import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { TcpLink, type Direction, type MessageFate, type Weather } from './tcp-link.js';

/** A stretch of network between clients and a Redis server, on which a test can break things. */
export class TcpProxy {
  readonly port: number;
  readonly url: string;
  private readonly links = new Set<TcpLink>();
  private readonly weather: Weather = {
    delay: { requests: 0, replies: 0 },
    drop: { requests: false, replies: false },
    messages: 'delivered',
    replyBudget: Infinity,
  };
  private refusing = false;
  /** How many clients were refused. */
  refused = 0;

  private constructor(
    private readonly listener: Server,
    private targetPort: number,
  ) {
    this.port = (listener.address() as AddressInfo).port;
    this.url = `redis://127.0.0.1:${String(this.port)}`;
    listener.on('connection', (client) => {
      if (this.refusing) {
        this.refused++;
        client.destroy();
        return;
      }
      const link = new TcpLink(client, this.targetPort, this.weather, () => this.links.delete(link));
      this.links.add(link);
    });
  }

  static async start(targetPort: number): Promise<TcpProxy> {
    const listener = createServer({ noDelay: true });
    listener.listen(0, '127.0.0.1');
    await once(listener, 'listening');
    return new TcpProxy(listener, targetPort);
  }

  /** How many clients are connected. */
  get connections(): number {
    return [...this.links].filter(({ client }) => !client.closed).length;
  }

  /** How many requests or replies are on their way: only then does a new delay come too late for them. */
  underway(direction: Direction): number {
    return [...this.links].reduce((sum, { underway }) => sum + underway[direction], 0);
  }

  /** New connections lead to another server, as with a name that has a new address. The present ones stay. */
  leadTo(port: number): void {
    this.targetPort = port;
  }

  /** Replies take so many ms longer. What is on its way already keeps the delay that it started with. */
  replyDelay(ms: number): void {
    this.weather.delay.replies = ms;
  }

  /** Requests take so many ms longer, and arrive even if the client has gone meanwhile. */
  requestDelay(ms: number): void {
    this.weather.delay.requests = ms;
  }

  /** Requests reach the server, but nothing comes back. */
  dropReplies(on: boolean): void {
    this.drop('replies', on);
  }

  /** Nothing reaches the server. */
  dropRequests(on: boolean): void {
    this.drop('requests', on);
  }

  /** Swallows the messages of subscriptions, and lets everything else through. */
  dropMessages(on: boolean): void {
    this.messages(on ? 'dropped' : 'delivered');
  }

  /** What becomes of the messages of subscriptions from now on. Everything else goes through. */
  messages(fate: MessageFate): void {
    this.weather.messages = fate;
  }

  /** As a firewall does with idle connections: the present ones carry nothing from now on, and no side is told. */
  forgetConnections(): void {
    for (const link of this.links) link.forget();
  }

  /** Ends all present connections. */
  cut(): void {
    for (const link of this.links) link.cut();
  }

  /** Lets `count` more bytes of replies through, and ends the connection that got the last. With 0 the next reply is lost. */
  cutAfterReplyBytes(count: number): void {
    this.weather.replyBudget = count;
  }

  /** Ends new connections as soon as they are made. */
  refuse(on: boolean): void {
    this.refusing = on;
  }

  async stop(): Promise<void> {
    const closed = once(this.listener, 'close');
    this.listener.close();
    this.refusing = true;
    this.cut();
    await closed;
  }

  private drop(direction: Direction, on: boolean): void {
    this.weather.drop[direction] = on;
    if (on) return;
    // No stream goes on after a gap: a client would take the next reply for the one that is missing.
    for (const link of this.links) if (link.gap) link.cut();
  }
}
