import { isLockUnavailableError } from '../../../api/error-guards.js';
import { doubted, grantedInVain } from '../../../store/unconfirmed.js';
import type { Receipt } from './command.js';
import { translate } from '../connection/redis-errors.js';
import type { Replication } from './replication.js';

/** Waits until replicas have the writes, if replication is configured. */
export class Confirmations {
  constructor(private readonly replication: Replication | undefined) {}

  /**
   * A grant counts when replicas have it, if replication is configured.
   * @param takesNoEntry then "busy" is the last word for a caller that does not wait, and it has to be true: without the
   * replicas, the holder in the way may be one whose grant is just being confirmed in vain
   */
  confirmed<R extends { readonly granted: boolean }>(
    name: string,
    ask: (receipt: Receipt | undefined) => Promise<R>,
    takesNoEntry = false,
  ): Promise<R> {
    const receipt = this.receipt();
    return receipt === undefined ? ask(undefined) : this.askAndConfirm(name, ask, receipt, takesNoEntry);
  }

  private async askAndConfirm<R extends { readonly granted: boolean }>(
    name: string,
    ask: (receipt: Receipt) => Promise<R>,
    receipt: Receipt,
    takesNoEntry: boolean,
  ): Promise<R> {
    const reply = await ask(receipt);
    if (reply.granted) await this.confirm(receipt, name);
    else if (takesNoEntry) await this.assertReplicas(receipt, name);
    else if (!this.isCertain(receipt)) {
      // A waiter keeps its entry, and would hear the truth only if its wait ended now.
      await this.assertReplicas(receipt, name).catch((error: unknown) => {
        if (!isLockUnavailableError(error) || error.permanent) throw error;
        doubted(reply, error);
      });
    }
    return reply;
  }

  /** The replicas had the last write that was to be confirmed over that connection. */
  private isCertain({ server }: Receipt): boolean {
    return server === undefined || this.replication?.hasConfirmed(server) === true;
  }

  private async assertReplicas({ server }: Receipt, name: string): Promise<void> {
    try {
      if (server !== undefined) await this.replication?.confirm(server);
    } catch (error) {
      throw translate(error, name, 'refused');
    }
  }

  /** For a write that is to be confirmed; undefined without replication. */
  receipt(): Receipt | undefined {
    return this.replication && {};
  }

  /** Waits until replicas of the server that has carried out the write have it. */
  async confirm(receipt: Receipt | undefined, name: string): Promise<void> {
    const { replication } = this;
    if (replication === undefined || receipt === undefined) return;
    const { server, generation } = receipt;
    try {
      if (server !== undefined) await replication.confirm(server);
      // Another connection has written nothing, and so has nothing to wait for.
      if (server === undefined || server.generationOf() !== generation)
        throw new Error('the connection was lost meanwhile');
    } catch (error) {
      // The write that is to be confirmed has been carried out, even if the confirmation has failed.
      throw grantedInVain(translate(error, name, 'unknown'));
    }
  }
}
