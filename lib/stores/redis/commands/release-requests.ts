import type { AskRequest } from '../../../store/queue-messages.js';
import type { Deployment } from '../connection/deployment.js';
import { askedText, QUEUE_CHANNEL } from '../messages/queue-protocol.js';
import { codeOf } from './replies.js';
import type { ScriptCalls } from './script-calls.js';
import { subscribersOf } from '../messages/subscribers.js';

/** Tells clients that others ask for their locks. */
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
      const { counts, isUncertain } = await subscribersOf(this.connection, [channel]);
      const [count = 0] = counts;
      // On a cluster each node passes the message on to all others, so it also reaches a subscriber that was not counted.
      if (count === 0 && !isUncertain && !this.connection.isCluster) return false;
      const node = this.connection.nodeOf(this.calls.keys(name).lock) ?? (await this.connection.nodes())[0];
      if (node === undefined) return false;
      const receivers = await node.send((client) => client.call('PUBLISH', channel, askedText(request)));
      // PUBLISH counts subscribers of patterns too, and on a cluster only those of its own node.
      return count > 0 || (codeOf(receivers, 0, Infinity) > 0 && isUncertain);
    } catch (error) {
      throw this.calls.translated(error, name);
    }
  }
}
