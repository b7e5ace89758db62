import type { Session } from './command.js';

type Subscribers = Map<string, Set<Session>>;

/** Channels and who listens to them. Messages that go to one shard only have channels of their own. */
export class Messages {
  private readonly channels: Subscribers = new Map();
  private readonly shardChannels: Subscribers = new Map();

  subscribe(session: Session, channel: string, sharded: boolean): void {
    const all = this.of(sharded);
    const subscribers = all.get(channel) ?? new Set();
    all.set(channel, subscribers.add(session));
    ownOf(session, sharded).add(channel);
  }

  unsubscribe(session: Session, channel: string, sharded: boolean): void {
    const all = this.of(sharded);
    const subscribers = all.get(channel);
    subscribers?.delete(session);
    if (subscribers?.size === 0) all.delete(channel);
    ownOf(session, sharded).delete(channel);
  }

  /** @returns how many have got the message */
  publish(channel: string, message: string, sharded: boolean): number {
    const subscribers = this.of(sharded).get(channel);
    for (const session of subscribers ?? [])
      session.push([sharded ? 'smessage' : 'message', channel, message]);
    return subscribers?.size ?? 0;
  }

  count(channel: string, sharded: boolean): number {
    return this.of(sharded).get(channel)?.size ?? 0;
  }

  names(sharded: boolean): string[] {
    return [...this.of(sharded).keys()];
  }

  /** The connection is gone. */
  leave(session: Session): void {
    for (const sharded of [true, false])
      for (const channel of [...ownOf(session, sharded)]) this.unsubscribe(session, channel, sharded);
  }

  private of(sharded: boolean): Subscribers {
    return sharded ? this.shardChannels : this.channels;
  }
}

const ownOf = (session: Session, sharded: boolean): Set<string> =>
  sharded ? session.shardChannels : session.channels;
