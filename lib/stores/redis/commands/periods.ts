import type { HoldState, RememberRequest, StorePeriods } from '../../../store/lock-store.js';
import type { Confirmations } from './confirmations.js';
import { heldReply, sinceReply } from './replies.js';
import * as scripts from './script.js';
import type { ScriptCalls } from './script-calls.js';

/** Notes beside plain locks that their work is done. With replication, a note counts when replicas have it. */
export class Periods implements StorePeriods {
  constructor(
    private readonly calls: ScriptCalls,
    private readonly confirmations: Confirmations,
  ) {}

  async remember({ name, owner, period }: RememberRequest): Promise<HoldState> {
    const { lock, done } = this.calls.keys(name);
    const receipt = this.confirmations.receipt();
    const args = [owner, period];
    const state = await this.calls.run(
      scripts.remember,
      [lock, done],
      args,
      name,
      heldReply,
      undefined,
      receipt,
    );
    if (state === 'held') await this.confirmations.confirm(receipt, name);
    return state;
  }

  recall(name: string): Promise<number | undefined> {
    return this.calls.run(scripts.recall, [this.calls.keys(name).done], [], name, sinceReply);
  }
}
