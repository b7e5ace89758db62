import type { AskRequest } from '../../port/queue-messages.js';
import type { Deployment, Server } from './deployment.js';
import { askedText, QUEUE_CHANNEL } from './queue-protocol.js';
import { countOf, codeOf } from './replies.js';
import type { ScriptCalls } from './script-calls.js';

/** How many clients are subscribed to a channel, as far as the servers have answered. */
interface Subscribers {
  readonly count: number;
  /** A server has not answered, or the user may not ask. */
  readonly isUncertain: boolean;
}

/** Tells clients that others ask for what they hold. */
export class ReleaseRequests {
  constructor(
    private readonly connection: Deployment,
    private readonly calls: ScriptCalls,
  ) {}

  /** @returns whether the client of the owner is subscribed */
  async send(request: AskRequest): Promise<boolean> {
    const { name, owner } = request;
    const channel = QUEUE_CHANNEL + owner.slice(0, owner.lastIndexOf(':'));
    try {
      const { count, isUncertain } = await this.subscribersOf(channel);
      if (count === 0 && !isUncertain) return false;
      const node = this.connection.nodeOf(this.calls.keys(name).lock) ?? (await this.connection.nodes())[0];
      if (node === undefined) return false;
      const receivers = await node.send((client) => client.call('PUBLISH', channel, askedText(request)));
      // PUBLISH counts subscribers of patterns too, and on a cluster only those of its own node.
      return count > 0 || codeOf(receivers, 0, Infinity) > 0;
    } catch (error) {
      throw this.calls.translated(error, name);
    }
  }

  /** On a cluster each node counts only its own subscribers. */
  async subscribersOf(channel: string): Promise<Subscribers> {
    const ask = async (node: Server) =>
      countOf(await node.send((client) => client.call('PUBSUB', 'NUMSUB', channel)));
    const counts = await Promise.allSettled((await this.connection.nodes()).map(ask));
    const count = counts.reduce((sum, node) => sum + (node.status === 'fulfilled' ? node.value : 0), 0);
    return { count, isUncertain: counts.some(({ status }) => status === 'rejected') };
  }
}
