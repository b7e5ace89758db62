import { LockClosedError } from '../../api/errors.js';
import { isLockUnavailableError } from '../../api/error-guards.js';
import type { LockStore, ReleaseRequest, TransferReply, TransferRequest } from '../../store/lock-store.js';
import type { Releaser } from '../../store/releaser.js';
import { answerWithin } from './answer-within.js';
import { deadlineOf, now } from '../holding/deadline.js';
import type { LockClient } from '../lock-client.js';
import { asError, backoff, isRefusal, tooLate } from './waiting.js';

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
    private readonly client: Pick<LockClient, 'setTimer' | 'isClosed'> & {
      readonly releaser: Pick<Releaser, 'release'>;
    },
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
   * @param until the moment of giving up, on the monotonic clock
   * @param keepUntil the moment until which the store keeps the lock from other owners, even after a revoked transfer
   * @throws LockUnavailableError if the store did not answer by then; the transfer is revoked
   */
  async pass(request: TransferRequest, until: number, keepUntil: number): Promise<Transferred> {
    let isDoubtful = false;
    for (let failures = 0; ; failures++) {
      const askedAt = now();
      const answer = await this.ask(request, askedAt, until);
      if (!(answer instanceof Error)) {
        if (!answer.granted && isDoubtful) this.takeBack(request, keepUntil);
        return { ...answer, askedAt, isDoubtful };
      }
      isDoubtful ||= !isRefusal(answer);
      const pause = backoff(failures);
      if (!isLockUnavailableError(answer) || answer.permanent || now() + pause >= until) {
        if (isDoubtful) this.takeBack(request, keepUntil);
        throw answer;
      }
      if (!this.client.isClosed)
        await new Promise<void>((resolve) => this.client.setTimer(now() + pause, resolve));
      if (this.client.isClosed) {
        this.takeBack(request, keepUntil);
        throw new LockClosedError(request.name);
      }
    }
  }

  /** Releases one of the two owners of a transfer, repeatedly, because the transfer may arrive after a release. */
  giveUp(release: ReleaseRequest, until: number): void {
    void this.client.releaser.release(release, until, { insist: true });
  }

  /** Revokes a transfer: releases its next owner, which may have got the hold. */
  takeBack({ name, next, leaseTime, queue }: TransferRequest, keepUntil: number): void {
    const keepFor = Math.ceil(keepUntil - now());
    const release = { name, owner: next, leaseTime, queue, keepFor: keepFor > 0 ? keepFor : undefined };
    this.giveUp(release, now() + leaseTime);
  }

  private async ask(
    request: TransferRequest,
    askedAt: number,
    until: number,
  ): Promise<TransferReply | Error> {
    try {
      const reply = await answerWithin(this.transfer(request), request.name, { until });
      const isLate = reply.granted && now() >= deadlineOf(askedAt, request.leaseTime);
      return isLate ? tooLate(request.name) : reply;
    } catch (error) {
      return asError(error);
    }
  }
}
