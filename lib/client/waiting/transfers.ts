import { isLockUnavailableError } from '../../api/error-guards.js';
import { LockClosedError, type LockUnavailableError } from '../../api/errors.js';
import type {
  LockStore,
  QueueTerms,
  ReleaseRequest,
  TransferReply,
  TransferRequest,
} from '../../store/lock-store.js';
import { answerWithin, untilAnswered } from './answer-within.js';
import { deadlineOf, now } from '../holding/deadline.js';
import type { Tenure } from '../holding/tenure.js';
import type { LockClient } from '../lock-client.js';
import { asError } from '../../runtime/thrown.js';
import { isRefusal, tooLate, type WaitRequest } from './waiting.js';

/** The result of a transfer. */
export type Transferred = TransferReply & {
  /** The moment at which the answered request was sent, on the monotonic clock. */
  readonly askedAt: number;
  /** Whether an earlier request got no answer, and may arrive later. */
  readonly isDoubtful: boolean;
};

/**
 * Passes holds of this client on to an owner on its way to another process, and takes such holds over. A request
 * without an answer is repeated for the same two owners, which shows whether an earlier request has succeeded. A transfer
 * without any answer is revoked: its next owner is released, even if the transfer arrives after that.
 */
export class Transfers {
  private readonly underway = new Set<Promise<unknown>>();

  constructor(
    private readonly transfer: NonNullable<LockStore['transfer']>,
    private readonly client: LockClient,
  ) {}

  /** Runs a transfer with the steps that follow it, so that `settled` waits for all of them. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    const running = work();
    this.underway.add(running);
    try {
      return await running;
    } finally {
      this.underway.delete(running);
    }
  }

  /** For the end of the client: waits until each transfer has succeeded or is revoked. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.underway);
  }

  /**
   * Passes the tenure on to an owner that belongs to no process yet. The tenure ends here as soon as the request is
   * sent, whether or not a reply comes: a lost reply may have been the consent.
   * @param within ms after which the hold ends if no process resumes it
   * @throws LockUnavailableError if the store did not answer in time; the client then releases the lock
   */
  async handOver(tenure: Tenure, within: number): Promise<Transferred & { readonly owner: string }> {
    const { client } = this;
    const { fencingToken, deadline, doubtful } = tenure;
    const release = client.returns.requestOf(tenure);
    const next = client.nextOwner();
    const { name, owner, queue } = release;
    const request = { name, owner, queue, next, leaseTime: within, leastToken: fencingToken + 1 };
    const giveUpAt = Math.min(deadline, now() + client.options.waitTime);
    const passing = this.pass(request, giveUpAt, now() + (release.keepFor ?? 0));
    const until = Math.max(now() + within, tenure.keptAtMostUntil);
    client.labels.keep(within);
    tenure.end();
    try {
      const passed = await passing;
      client.acquisitions.departed({ ...release, keepFor: undefined });
      if (doubtful) this.giveUp({ ...release, keepFor: undefined }, until);
      return { ...passed, owner: next };
    } catch (error) {
      this.giveUp({ ...release, keepFor: tenure.keepFor }, until);
      throw error;
    }
  }

  /**
   * Takes a hold over from an owner that belongs to no process any more.
   * @param queue undefined for a plain lock
   * @param request `leaseTime`: length of the new lease, which is renewed. `keepFor`: the longest remaining
   *   `minHoldTime`, ms
   * @throws LockLostError if that owner does not hold the lock
   * @throws LockUnavailableError if the store did not answer in time
   */
  async resume(
    queue: QueueTerms | undefined,
    request: Pick<TransferRequest, 'name' | 'owner' | 'leaseTime' | 'leastToken'> &
      Pick<WaitRequest, 'inside'> & { readonly keepFor: number },
  ): Promise<{ readonly tenure: Tenure; readonly date: number } | Extract<Transferred, { granted: false }>> {
    const { name, owner, leaseTime, leastToken } = request;
    const { client } = this;
    client.assertOpen(name, request);
    const terms = { leaseTime, renewed: true };
    const granted = client.initialLease(terms);
    const next = client.nextOwner();
    const wanted = queue ?? client.plainTerms.queue;
    const asked = { name, owner, next, leaseTime: granted, leastToken, queue: wanted };
    const keepUntil = now() + request.keepFor;
    const giveUpAt = now() + Math.min(client.options.waitTime, leaseTime);
    const passed = await this.pass(asked, giveUpAt, keepUntil);
    if (!passed.granted) return passed;
    if (client.refuses(request)) {
      this.takeBack(asked, keepUntil);
      throw new LockClosedError(name);
    }
    const { askedAt: grantedAt, fencingToken, isDoubtful, date } = passed;
    const local = client.callers.queueFor({ name, queue });
    const origin = { owner: next, grantedAt, leaseTime: granted, fencingToken, queue: wanted };
    const tenure = client.open(local, terms, { ...origin, doubtful: isDoubtful });
    return { tenure: client.begin(tenure), date };
  }

  /**
   * @param until the moment of giving up, on the monotonic clock
   * @param keepUntil the moment until which the store keeps the lock from other owners, even after a revoked transfer
   * @throws LockUnavailableError if the store did not answer by then; the transfer is revoked
   */
  private async pass(request: TransferRequest, until: number, keepUntil: number): Promise<Transferred> {
    const { client, transfer } = this;
    const { name, leaseTime } = request;
    let isDoubtful = false as boolean;
    let refused: LockUnavailableError | undefined;
    // The store may have said why not, before the last question that had too little time.
    const outage = () => client.store.outageOf?.(name) ?? refused;
    const assertOpen = () => {
      if (client.isClosed) throw new LockClosedError(name);
    };
    const ask = async (): Promise<Transferred> => {
      assertOpen();
      const askedAt = now();
      try {
        const reply = await answerWithin(transfer(request), name, { until, outage });
        if (reply.granted && now() >= deadlineOf(askedAt, leaseTime)) throw tooLate(name);
        return { ...reply, askedAt, isDoubtful };
      } catch (thrown) {
        const error = asError(thrown);
        isDoubtful ||= !isRefusal(error);
        if (isLockUnavailableError(error)) refused = error;
        assertOpen();
        throw error;
      }
    };
    const passed = await untilAnswered(ask, until).catch((error: unknown) => {
      if (isDoubtful) this.takeBack(request, keepUntil);
      throw error;
    });
    if (!passed.granted && isDoubtful) this.takeBack(request, keepUntil);
    return passed;
  }

  /** Releases one of the two owners of a transfer, repeatedly, because the transfer may arrive after a release. */
  private giveUp(release: ReleaseRequest, until: number): void {
    void this.client.releaser.release(release, until, { insist: true });
  }

  /** Revokes a transfer: releases its next owner, which may have got the hold. */
  private takeBack({ name, next, leaseTime, queue }: TransferRequest, keepUntil: number): void {
    const keepFor = Math.ceil(keepUntil - now());
    const release = { name, owner: next, leaseTime, queue, keepFor: keepFor > 0 ? keepFor : undefined };
    this.giveUp(release, now() + leaseTime);
  }
}
