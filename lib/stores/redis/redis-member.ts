import type { Redis } from 'ioredis';
import type { Incarnation, Member, MemberStore } from '../quorum/member.js';
import type { ServerConnection } from './connection.js';
import { directCommand } from './direct-command.js';
import { noteKeyOf } from './keys.js';
import { translate } from './redis-errors.js';
import { noteReply, setReply, timeReply } from './replies.js';
import { serverInfo } from './server-info.js';
import { monotonicTime } from '../../lock.runtime.js';

/** A Redis server, or a Sentinel deployment, as one member of a quorum. */
export class RedisMember implements Member {
  private readonly noteKey: string;

  constructor(
    readonly store: MemberStore,
    readonly deployment: ServerConnection,
    keyPrefix: string,
  ) {
    this.noteKey = noteKeyOf(keyPrefix);
  }

  get node(): string {
    return this.deployment.node;
  }

  get generation(): number {
    return this.deployment.generationOf();
  }

  get isDown(): boolean {
    return this.deployment.isDown;
  }

  outage(name: string): Error {
    return translate(this.deployment.outage(), name);
  }

  async identify(): Promise<Incarnation> {
    const askedAt = monotonicTime();
    const [{ runId, uptime }, noted, time] = await Promise.all([
      serverInfo(this.deployment),
      this.deployment.send((client) => directCommand(client, 'get')(this.noteKey)),
      this.deployment.send((client) => client.time()),
    ]);
    const told = timeReply(time);
    return {
      // Some managed services hide it behind zeros.
      runId: /^0*$/.test(runId ?? '') ? undefined : runId,
      // The server takes the difference of two times in whole seconds, which may be almost one second too long.
      uptime: uptime === undefined || uptime < 0 ? uptime : Math.max(0, uptime - 1_000),
      clock: { least: told - monotonicTime(), most: told - askedAt },
      noted: noteReply(noted) ?? undefined,
    };
  }

  async note(note: string, time: number): Promise<boolean> {
    const send = (client: Redis) => directCommand(client, 'set')(this.noteKey, note, 'PX', time, 'NX');
    return setReply(await this.deployment.send(send));
  }
}
