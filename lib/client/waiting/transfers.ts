import { isLockUnavailableError, LockClosedError } from '../../api/errors.js';
import type { LockStore, ReleaseRequest, TransferReply, TransferRequest } from '../../store/lock-store.js';
import type { Releaser } from '../../store/releaser.js';
import { answeredBy } from './answered-by.js';
import { deadlineOf, now } from '../holding/deadline.js';
import type { LockClient } from '../lock-client.js';
import { asError, backoff, isRefusal, tooLate } from './waiting.js';

/** What has become of a transfer. */
export type Transferred = TransferReply & {
  /** When the request that got the answer was sent, on the monotonic clock. */
  readonly askedAt: number;
  /** A request before it got no answer, and may arrive later. */
  readonly isDoubtful: boolean;
};

/**
 * Passes holds of this client on to an owner that is on its way to another process, and back. A request without an answer is
 * sent again for the same two owners, so that a transfer that was carried out the first time is found out. A transfer that
 * stays without an answer is taken back: its next owner is released, also if the transfer arrives after that.
 */
export class Transfers {
  private readonly underway = new Set<Promise<unknown>>();

  constructor(
    private readonly transfer: NonNullable<LockStore['transfer']>,
    private readonly client: Pick<LockClient, 'setTimer' | 'isClosed'> & {
      readonly releaser: Pick<Releaser, 'release'>;
    },
  ) {}

  /** Runs what passes a hold on, with what follows its answer: `settled` waits for that. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    const running = work();
    this.underway.add(running);
    try {
      return await running;
    } finally {
      this.underway.delete(running);
    }
  }

  /** For the end of the client: a hold that is on its way has its next owner, or is taken back. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.underway);
  }

  /**
   * @param until when it gives up, on the monotonic clock
   * @param keepUntil until when no other owner is to get the lock, also where it is taken back
   * @throws LockUnavailableError when the store did not answer by then; what has been asked for is taken back
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

  /** Releases one of the two owners of a transfer. The transfer may arrive after that, so the release is repeated. */
  giveUp(release: ReleaseRequest, until: number): void {
    void this.client.releaser.release(release, until, { insist: true });
  }

  /** Releases the next owner, which may have got the hold. */
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
      const reply = await answeredBy(until, this.transfer(request), request.name);
      const isLate = reply.granted && now() >= deadlineOf(askedAt, request.leaseTime);
      return isLate ? tooLate(request.name) : reply;
    } catch (error) {
      return asError(error);
    }
  }
}
