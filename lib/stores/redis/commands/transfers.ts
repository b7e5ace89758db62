import type { TransferReply, TransferRequest } from '../../../store/lock-store.js';
import type { AcquireCommands } from './acquire-commands.js';
import type { Argument } from './command.js';
import type { Confirmations } from './confirmations.js';
import type { Deployment } from '../connection/deployment.js';
import { FENCE_TTL } from './keys.js';
import { LETTERS } from '../messages/queue-protocol.js';
import { transferReply } from './replies.js';
import * as scripts from './script.js';
import type { ScriptCalls } from './script-calls.js';

/** Passes holds on from one owner to another. A release of the next owner undoes requests that are still under way. */
export class Transfers {
  constructor(
    private readonly connection: Deployment,
    private readonly calls: ScriptCalls,
    private readonly acquiring: Pick<AcquireCommands, 'guarded'>,
    private readonly confirmations: Confirmations,
  ) {}

  transfer(request: TransferRequest): Promise<TransferReply> {
    const { name, next } = request;
    const { queued } = this.calls.keys(name);
    return this.confirmations.confirmed(name, (receipt) =>
      this.acquiring.guarded(next, [name], async (acquisition) => {
        // It may be the first command, and names the channel of the release.
        if (this.connection.isCluster) await this.connection.learnSharding();
        const [script, args] = this.scriptFor(request);
        return transferReply(await this.connection.run(script, queued, args, acquisition, receipt));
      }),
    );
  }

  private scriptFor({
    name,
    owner,
    next,
    leaseTime,
    leastToken,
    queue,
  }: TransferRequest): readonly [scripts.Script, readonly Argument[]] {
    const { clusterArgument } = this.calls;
    if (queue === undefined || queue.kind === 'lock') {
      const publishing = this.calls.publishing(this.calls.keys(name));
      const args = [owner, next, leaseTime, leastToken, FENCE_TTL, ...publishing, clusterArgument];
      return [scripts.transfer, args];
    }
    const { mode, kind, capacity } = queue;
    const terms = [LETTERS[mode], kind, capacity];
    return [
      scripts.queueTransfer,
      [owner, next, ...terms, leaseTime, leastToken, FENCE_TTL, clusterArgument],
    ];
  }
}
