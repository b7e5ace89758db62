import type { Actor } from '../world/actor.js';
import type { Link, Pipe } from '../world/link.js';
import type { Listener, MemoryServer, Method, Request } from './memory-server.js';

/** ms until a lost connection is tried again. */
const RETRY = 50;
const RETRY_SPREAD = 150;

interface Pending {
  readonly request: Request;
  settle(error: Error | undefined, value?: unknown): void;
}

const named = (name: string, message: string): Error => Object.assign(new Error(message), { name });

export interface Failure {
  readonly error: Error;
  readonly effect: 'refused' | 'unknown';
}

/** One connection of a process to a server, which is made again when it is lost. */
export class Connection {
  status: 'connecting' | 'ready' | 'down' = 'connecting';
  generation = 1;
  onReady: (first: boolean) => void = () => undefined;
  onLost: () => void = () => undefined;
  private pipe: Pipe | undefined;
  private readonly pending = new Map<number, Pending>();
  private readonly waiting = new Set<() => void>();
  private requests = 0;
  private wasReady = false;
  private closed = false;
  /** As ioredis does by default: what has not been answered is sent again over the next connection. */
  private readonly resends: boolean;

  constructor(
    readonly actor: Actor,
    readonly link: Link,
    readonly server: MemoryServer,
    private readonly timeout: number,
  ) {
    this.resends = link.random.next() < 0.5;
    this.connect();
  }

  /** @throws Failure */
  call(method: Method, args: readonly unknown[], listener?: Listener): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const id = ++this.requests;
      const request: Request = { method, args, listener };
      const fail = (error: Error, effect: Failure['effect']) => {
        reject(Object.assign(named('Failure', error.message), { error, effect } satisfies Failure));
      };
      let over = false;
      let sent = false;
      const timer = this.actor.setTimer(() => {
        this.actor.afterInput(() => {
          if (over) return;
          over = true;
          this.waiting.delete(send);
          if (sent) fail(named('CommandTimeout', `no answer within ${String(this.timeout)} ms`), 'unknown');
          else fail(named('NotConnected', 'not connected in time'), 'refused');
        });
      }, this.timeout);
      const settle: Pending['settle'] = (error, value) => {
        this.pending.delete(id);
        if (over) return;
        over = true;
        this.actor.clearTimer(timer);
        if (error === undefined) resolve(value);
        else if (error.name === 'ConnectionLost') fail(error, 'unknown');
        else reject(error);
      };
      const send = () => {
        if (over) return;
        if (this.status === 'ready') {
          sent = true;
          this.pending.set(id, { request, settle });
          this.transmit(id, request);
        } else if (this.status === 'connecting') {
          this.waiting.add(send);
        } else {
          over = true;
          this.actor.clearTimer(timer);
          fail(named('NotConnected', 'not connected'), 'refused');
        }
      };
      send();
    });
  }

  close(): void {
    this.closed = true;
    this.pipe?.cut();
    this.pipe = undefined;
    this.status = 'down';
  }

  /** Whether the other end is still there. */
  get isOpen(): boolean {
    return this.pipe?.open === true;
  }

  private connect(): void {
    if (this.closed) return;
    const { actor, link, server } = this;
    actor.world.after(
      2 * link.latency('there'),
      () => {
        if (this.closed) return;
        const silent = link.silentUntil.there > actor.world.time || link.silentUntil.back > actor.world.time;
        if (link.refuses || silent || server.actor?.alive !== true) {
          this.lose();
          return;
        }
        const pipe = (this.pipe = link.connect(actor, server.actor));
        pipe.onClose.back = () => {
          if (this.pipe === pipe) this.lose();
        };
        server.accept(pipe);
        this.status = 'ready';
        const first = !this.wasReady;
        this.wasReady = true;
        for (const [id, { request }] of [...this.pending]) this.transmit(id, request);
        const waiting = [...this.waiting];
        this.waiting.clear();
        for (const send of waiting) send();
        this.onReady(first);
      },
      actor,
    );
  }

  private lose(): void {
    this.pipe = undefined;
    if (this.closed) return;
    const was = this.status;
    this.status = 'down';
    const waiting = [...this.waiting];
    this.waiting.clear();
    for (const send of waiting) send();
    if (was === 'ready') this.generation++;
    if (!this.resends)
      for (const { settle } of [...this.pending.values()]) settle(named('ConnectionLost', 'connection lost'));
    if (was !== 'down') this.onLost();
    this.actor.setTimer(
      () => {
        this.connect();
      },
      RETRY + this.link.random.next() * RETRY_SPREAD,
    );
  }

  private transmit(id: number, request: Request): void {
    const { pipe, server } = this;
    if (pipe === undefined) return;
    pipe.send('there', () => {
      server.receive(pipe, request, (error, value) => {
        pipe.send('back', () => {
          this.pending.get(id)?.settle(error, value);
        });
      });
    });
  }
}
