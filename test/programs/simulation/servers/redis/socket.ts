import { Duplex } from 'node:stream';
import type { Actor, SimulatedTimer } from '../../world/actor.js';
import type { Link, Pipe } from '../../world/link.js';
import type { RedisServer, Sending } from './redis-server.js';

const refused = (): Error => Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });

/** A client's end of a connection, in place of a socket of Node. */
export class SimulatedSocket extends Duplex {
  connecting = true;
  bytesRead = 0;
  private way: Pipe | undefined;
  private sending: Sending | undefined;
  private timer: SimulatedTimer | undefined;

  constructor(
    private readonly actor: Actor,
    private readonly link: Link,
    private readonly server: RedisServer,
  ) {
    super({ allowHalfOpen: false });
    this.attempt();
  }

  // What only real sockets have.

  setNoDelay(): this {
    return this;
  }

  setKeepAlive(): this {
    return this;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  /** ioredis asks for it only while it connects, when nothing can come. */
  setTimeout(time: number, callback?: () => void): this {
    this.actor.clearTimer(this.timer);
    this.timer = time > 0 && callback !== undefined ? this.actor.setTimer(callback, time) : undefined;
    return this;
  }

  override _read(): void {
    // All that comes is pushed as it comes.
  }

  override _write(chunk: Buffer, _: BufferEncoding, done: () => void): void {
    this.sending?.send(chunk);
    done();
  }

  override _writev(chunks: readonly { readonly chunk: Buffer }[], done: () => void): void {
    this.sending?.send(Buffer.concat(chunks.map(({ chunk }) => chunk)));
    done();
  }

  override _final(done: () => void): void {
    this.sending?.end();
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.actor.clearTimer(this.timer);
    if (this.way !== undefined) {
      this.way.onClose.back = () => undefined;
      this.way.cut();
    }
    done(error);
  }

  private attempt(): void {
    const { actor, link } = this;
    const { world } = actor;
    world.after(
      2 * link.latency('there'),
      () => {
        if (this.destroyed) return;
        const silentUntil = Math.max(link.silentUntil.there, link.silentUntil.back);
        // What asks for a connection is sent again until it gets through.
        if (silentUntil > world.time)
          world.at(
            silentUntil,
            () => {
              this.attempt();
            },
            actor,
          );
        else if (link.refuses || this.server.actor?.alive !== true) this.destroy(refused());
        else this.connect(this.server.actor);
      },
      actor,
    );
  }

  private connect(peer: Actor): void {
    const pipe = (this.way = this.link.connect(this.actor, peer));
    pipe.onClose.back = () => {
      this.destroy();
    };
    const deliver = (bytes: Buffer) => {
      this.bytesRead += bytes.length;
      if (!this.destroyed) this.push(bytes);
    };
    this.sending = this.server.accept(pipe, this.link, deliver, () => {
      if (!this.destroyed) this.push(null);
    });
    this.connecting = false;
    this.emit('connect');
  }
}
