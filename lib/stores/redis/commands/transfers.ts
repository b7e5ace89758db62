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
export const transfers =
  (
    connection: Deployment,
    calls: ScriptCalls,
    acquiring: Pick<AcquireCommands, 'guarded'>,
    confirmations: Confirmations,
  ): ((request: TransferRequest) => Promise<TransferReply>) =>
  (request) => {
    const { name, next } = request;
    return confirmations.confirmed(name, (receipt) =>
      acquiring.guarded(next, [name], async (acquisition) => {
        // It may be the first command, and names the channel of the release.
        if (connection.isCluster) await connection.learnSharding();
        const [script, args] = scriptFor(request, calls);
        const { queued } = calls.keys(name);
        return transferReply(await connection.run(script, queued, args, acquisition, receipt));
      }),
    );
  };

function scriptFor(
  { name, owner, next, leaseTime, leastToken, queue }: TransferRequest,
  calls: ScriptCalls,
): readonly [scripts.Script, readonly Argument[]] {
  const terms = [leaseTime, leastToken, FENCE_TTL];
  if (queue === undefined || queue.kind === 'lock') {
    const publishing = calls.publishing(calls.keys(name));
    return [scripts.transfer, [owner, next, ...terms, ...publishing, calls.clusterArgument]];
  }
  const { mode, kind, capacity } = queue;
  const args = [owner, next, LETTERS[mode], kind, capacity, ...terms, calls.clusterArgument];
  return [scripts.queueTransfer, args];
}
