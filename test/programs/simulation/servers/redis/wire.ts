import type { Actor } from '../../world/actor.js';
import type { Link, Pipe } from '../../world/link.js';
import type { Session } from './command.js';
import type { RedisModel } from './model.js';
import { Refusal, type Reply } from './replies.js';
import { encoded, type Protocol, pushed, RequestReader } from './resp.js';

/** How the replicas of a server answer for it. */
export interface Replicas {
  /** How many have all that has been written up to now. */
  readonly count: number;
  /** ms until they have told that. */
  readonly delay: number;
}

interface Around {
  readonly actor: Actor;
  readonly model: RedisModel;
  readonly replicas: () => Replicas;
  /** The server hangs up. */
  readonly leave: (wire: Wire) => void;
}

/** The server's end of one connection. */
export class Wire implements Session {
  protocol: Protocol = 2;
  name = '';
  ends = false;
  readonly channels = new Set<string>();
  readonly shardChannels = new Set<string>();
  private readonly reader = new RequestReader();
  private received = 0;
  private waiting: string[][] = [];
  /** A WAIT has not been answered yet. */
  private blocked = false;
  /** What leaves in one piece, while commands are carried out. */
  private out: string | undefined;

  constructor(
    readonly id: number,
    readonly pipe: Pipe,
    private readonly link: Link,
    private readonly around: Around,
    /** Gets the bytes on the other side. */
    private readonly deliver: (bytes: Buffer) => void,
  ) {}

  /** @param number of the piece: after a gap, what follows has not arrived either */
  receive(number: number, bytes: Uint8Array): void {
    if (this.ends || number !== this.received) return;
    this.received++;
    this.waiting.push(...this.reader.read(bytes));
    this.work();
  }

  push(items: readonly Reply[]): void {
    if (!this.link.dropsMessages) this.write(pushed(items, this.protocol));
  }

  private work(): void {
    this.out = '';
    while (this.waiting.length > 0 && !this.blocked && !this.ends) {
      const command = this.waiting.shift()!;
      if (command[0]?.toLowerCase() === 'wait') this.wait(command);
      else this.write(encoded(this.around.model.execute(command, this), this.protocol));
    }
    const { out } = this;
    this.out = undefined;
    if (out !== '') this.write(out);
    if (this.ends) this.around.leave(this);
  }

  private write(text: string): void {
    if (this.out !== undefined) {
      this.out += text;
      return;
    }
    const bytes = Buffer.from(text, 'latin1');
    this.pipe.send('back', () => {
      this.deliver(bytes);
    });
  }

  /** Answers when so many replicas have told that they have all, or when the time is over. */
  private wait([, wanted = '', time = '']: readonly string[]): void {
    const { actor, replicas } = this.around;
    if (!/^\d+$/.test(wanted) || !/^\d+$/.test(time)) {
      this.write(encoded(new Refusal('ERR value is not an integer or out of range'), this.protocol));
      return;
    }
    this.blocked = true;
    const answer = () => {
      this.blocked = false;
      this.write(encoded(replicas().count, this.protocol));
      this.work();
    };
    actor.world.after(
      replicas().delay,
      () => {
        if (replicas().count >= Number(wanted)) answer();
        else actor.setTimer(answer, Number(time));
      },
      actor,
    );
  }
}
