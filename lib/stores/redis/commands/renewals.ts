import type { HoldState, RenewRequest } from '../../../store/lock-store.js';
import type { Receipt } from './command.js';
import type { Confirmations } from './confirmations.js';
import type { Deployment } from '../connection/deployment.js';
import { FENCE_TTL } from './keys.js';
import { isWithheld, notALock, replyCode, translate } from '../connection/redis-errors.js';
import { renewReply } from './replies.js';
import * as scripts from './script.js';
import type { ScriptCalls } from './script-calls.js';

/** Holds per renewal command: large enough to spread its cost, small enough not to keep the server from other commands. */
const RENEWAL_BATCH = 100;

/** Renews many holds with few commands: the holds of one slot together, on a single server all holds. */
export class Renewals {
  constructor(
    private readonly connection: Deployment,
    private readonly calls: Pick<ScriptCalls, 'keys'>,
    private readonly confirmations: Confirmations,
  ) {}

  renew(requests: readonly RenewRequest[]): readonly Promise<HoldState>[] {
    const renewals = new Map<RenewRequest, Promise<HoldState>>();
    for (const batch of this.batchesOf(requests)) {
      const receipt = this.confirmations.receipt();
      const sent = this.send(batch, receipt).catch((error: unknown) => this.sendAgain(batch, receipt, error));
      const states = this.statesOf(batch, sent, receipt);
      batch.forEach((request, index) => renewals.set(request, states(index)));
    }
    return requests.map((request) => renewals.get(request) ?? Promise.resolve('deleted'));
  }

  private batchesOf(requests: readonly RenewRequest[]): RenewRequest[][] {
    const groups = new Map<number, RenewRequest[]>();
    for (const request of requests) {
      const group = this.connection.groupOf(this.calls.keys(request.name).lock);
      const members = groups.get(group);
      if (members === undefined) groups.set(group, [request]);
      else members.push(request);
    }
    const batches: RenewRequest[][] = [];
    for (const members of groups.values()) {
      for (let from = 0; from < members.length; from += RENEWAL_BATCH) {
        batches.push(members.slice(from, from + RENEWAL_BATCH));
      }
    }
    return batches;
  }

  /** In a slot that is being moved, the fence may be at another node than the lock. It outlives the lease by far. */
  private sendAgain(
    [request, ...others]: readonly RenewRequest[],
    receipt: Receipt | undefined,
    error: unknown,
  ): Promise<unknown> {
    const isSplit = replyCode(error) === 'TRYAGAIN' && others.length === 0;
    if (request === undefined || !isSplit || request.leaseTime > FENCE_TTL) throw error;
    const { name, owner, leaseTime } = request;
    const { lock } = this.calls.keys(name);
    // The lock in place of its fence, and for no longer than the lease.
    return this.connection.run(scripts.renew, [lock, lock], [0, owner, leaseTime], undefined, receipt);
  }

  private send(batch: readonly RenewRequest[], receipt: Receipt | undefined): Promise<unknown> {
    const keys = batch.flatMap(({ name }) => {
      const { lock, fence } = this.calls.keys(name);
      return [lock, fence];
    });
    const args = [FENCE_TTL, ...batch.flatMap(({ owner, leaseTime }) => [owner, leaseTime])];
    return this.connection.run(scripts.renew, keys, args, undefined, receipt);
  }

  private statesOf(
    batch: readonly RenewRequest[],
    reply: Promise<unknown>,
    receipt: Receipt | undefined,
  ): (index: number) => Promise<HoldState> {
    // One for the whole batch, with the first hold that needs it.
    let confirmed: Promise<void> | undefined;
    const confirm = () => (confirmed ??= this.confirmations.confirm(receipt, batch[0]?.name ?? ''));
    const read = reply.then((states) => renewReply(states, batch.length));
    const each = read.then(
      (states) =>
        states.map(async (state, index) => {
          if (state === 'no lock') throw notALock(batch[index]?.name ?? '');
          // A hold that is gone is gone on any server, and a renewal that only asks has written nothing.
          if (state === 'held' && batch[index]?.leaseTime !== 0) await confirm();
          return state;
        }),
      (error: unknown) => {
        // While a slot is being moved, one key that is gone makes the server refuse all keys of a command. And a command
        // that the user may not send is needed for one kind of lock, and not for another.
        const lonely = replyCode(error) === 'TRYAGAIN' || isWithheld(error);
        if (batch.length > 1 && lonely) return this.renewOneByOne(batch);
        throw translate(error, batch.length === 1 ? batch[0]?.name : undefined);
      },
    );
    return async (index) => (await (await each)[index]) ?? 'deleted';
  }

  private renewOneByOne(batch: readonly RenewRequest[]): Promise<HoldState>[] {
    return batch.flatMap((request) => this.renew([request]));
  }
}
