import type { Deployment } from './deployment.js';
import { translate } from './redis-errors.js';
import type { Replication } from './replication.js';
import type { ScriptCalls } from './script-calls.js';

/** Waits until replicas have what was written, if replication is configured. */
export class Confirmations {
  constructor(
    private readonly connection: Deployment,
    private readonly calls: ScriptCalls,
    private readonly replication: Replication | undefined,
  ) {}

  /** A grant counts when replicas have it, if replication is configured. */
  confirmed<R extends { readonly granted: boolean }>(name: string, ask: () => Promise<R>): Promise<R> {
    return this.replication === undefined ? ask() : this.askAndConfirm(name, ask);
  }

  private async askAndConfirm<R extends { readonly granted: boolean }>(
    name: string,
    ask: () => Promise<R>,
  ): Promise<R> {
    await this.calls.learnSharding(name); // this also learns which node has the lock
    const confirm = this.confirmation(name);
    const reply = await ask();
    if (reply.granted) await confirm();
    return reply;
  }

  /** To be made before a write, and called after it: waits until replicas have that write. */
  confirmation(name: string): () => Promise<void> {
    const { replication } = this;
    if (replication === undefined) return () => Promise.resolve();
    const key = this.calls.keys(name).lock;
    const node = this.connection.nodeOf(key);
    const generation = this.connection.generationOf(key);
    return async () => {
      try {
        if (node !== undefined) await replication.confirm(node);
        // Another connection has written nothing, and so has nothing to wait for.
        if (
          node !== this.connection.nodeOf(key) ||
          generation !== this.connection.generationOf(key) ||
          node === undefined
        ) {
          throw new Error('the connection was lost meanwhile');
        }
      } catch (error) {
        // The write that is to be confirmed has been carried out, even if the confirmation has failed.
        throw translate(error, name, 'unknown');
      }
    };
  }
}
