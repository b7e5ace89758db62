import { Random } from '../../chaos/random.js';
import type { Actor } from './actor.js';
import type { World } from './world.js';

/** ms that a message takes at least, and by how much it may take longer. */
const LATENCY = 0.05;
const SPREAD = 0.6;
/** One of so many messages takes so much longer, ms. */
const RARE = 50;
const LONG = 8;

export type Direction = 'there' | 'back';

/** The way between a process and a server, with what is wrong with it at the moment. */
export class Link {
  readonly random: Random;
  /** ms that each message takes longer. */
  readonly slow: Record<Direction, number> = { there: 0, back: 0 };
  /** True time until which nothing comes through. It is sent again then, unless the connection is gone. */
  readonly silentUntil: Record<Direction, number> = { there: 0, back: 0 };
  /** No connection can be made. */
  refuses = false;
  /** Messages of subscriptions do not arrive. */
  dropsMessages = false;
  private readonly pipes = new Set<Pipe>();

  constructor(readonly world: World) {
    this.random = new Random(world.random.between(0, 2 ** 31));
  }

  connect(client: Actor, server: Actor): Pipe {
    const pipe = new Pipe(this, client, server);
    this.pipes.add(pipe);
    return pipe;
  }

  latency(direction: Direction): number {
    const { random } = this;
    const rare = random.next() * RARE < 1 ? random.next() * LONG : 0;
    return LATENCY + random.next() * SPREAD + rare + this.slow[direction];
  }

  cut(): void {
    for (const pipe of [...this.pipes]) pipe.cut();
  }

  forget(pipe: Pipe): void {
    this.pipes.delete(pipe);
  }
}

/** One connection. What is sent one way arrives in the order in which it was sent. */
export class Pipe {
  open = true;
  onClose: Record<Direction, () => void> = { there: () => undefined, back: () => undefined };
  private readonly last: Record<Direction, number> = { there: 0, back: 0 };

  constructor(
    private readonly link: Link,
    private readonly client: Actor,
    private readonly server: Actor,
  ) {}

  send(direction: Direction, deliver: () => void): void {
    if (!this.open) return;
    const { link } = this;
    const [sender, receiver] =
      direction === 'there' ? [this.client, this.server] : [this.server, this.client];
    const from = Math.max(sender.time, link.silentUntil[direction]);
    const at = Math.max(from + link.latency(direction), this.last[direction]);
    this.last[direction] = at;
    // Of what is on its way when the connection is cut, the server may still get some.
    const survives = direction === 'there' && link.random.next() < 0.5;
    link.world.at(
      at,
      () => {
        if (this.open || survives) deliver();
      },
      receiver,
    );
  }

  cut(): void {
    if (!this.open) return;
    this.open = false;
    this.link.forget(this);
    const { world } = this.link;
    world.after(
      this.link.latency('back'),
      () => {
        this.onClose.back();
      },
      this.client,
    );
    world.after(
      this.link.latency('there'),
      () => {
        this.onClose.there();
      },
      this.server,
    );
  }
}
