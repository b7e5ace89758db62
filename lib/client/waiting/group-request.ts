import { LockClosedError } from '../../api/errors.js';
import { isLockUnavailableError } from '../../api/error-guards.js';
import { isWorthAnotherTry } from '../../store/another-try.js';
import { now } from '../holding/deadline.js';
import type { TenureOrigin } from '../holding/tenure.js';
import type { LockClient } from '../lock-client.js';
import { answerOf } from './request.js';
import { Alarm } from './alarm.js';
import { Waiter, type WaiterQueue } from './waiter.js';
import {
  backoff,
  type Busy,
  GRACE,
  isRefusal,
  refusedWith,
  unanswered,
  type WaitRequest,
} from './waiting.js';

/** The grant of each name, in order. */
type Grants = readonly TenureOrigin[];

/** A command under way. */
interface Asked {
  readonly owner: string;
  readonly leaseTime: number;
  readonly at: number;
}

/**
 * A caller's request for several plain locks of one location, all or none. A busy lock is an answer, and is not waited
 * for; see Attempt. The wait time bounds the time without an answer of the store. Each command has a new owner, because
 * the release of a command without an answer may arrive late.
 */
export class GroupRequest implements WaiterQueue {
  readonly name: string;
  readonly terms = { queue: undefined };
  readonly holder = undefined;
  attempts = 0;
  private waiter: Waiter<Grants> | undefined;
  private asked: Asked | undefined;
  private failure: Error | undefined;
  private readonly alarm: Alarm;

  constructor(
    readonly names: readonly string[],
    private readonly client: LockClient,
    private readonly onGone: (request: GroupRequest) => void,
  ) {
    this.name = names.join(',');
    this.alarm = new Alarm(client.setTimer);
  }

  get commands(): number {
    return this.attempts;
  }

  get length(): number {
    return this.waiter === undefined ? 0 : 1;
  }

  get waiting(): number {
    return this.waitingSince === undefined ? 0 : 1;
  }

  get waitingSince(): number | undefined {
    const { waiter } = this;
    return waiter !== undefined && waiter.request.waitTime > 0 ? waiter.arrivedAt : undefined;
  }

  /** @throws as LocalQueue.join */
  send(request: WaitRequest): Promise<Grants | Busy> {
    return new Promise((resolve, reject) => {
      const waiter = new Waiter<Grants>(this, request, resolve, reject);
      this.waiter = waiter;
      void this.ask(waiter);
      waiter.limit();
    });
  }

  sendAway(refused: (request: WaitRequest) => boolean): void {
    const { waiter } = this;
    if (waiter === undefined || !refused(waiter.request)) return;
    this.leave();
    waiter.refuse(new LockClosedError(this.name));
  }

  /** Releases what the command under way may take, before the caller is told that it has left. */
  leave(): void {
    this.answered();
    if (this.asked !== undefined) this.giveUp(this.asked);
  }

  answered(): void {
    if (this.waiter === undefined) return;
    this.waiter = undefined;
    this.alarm.ring();
    this.onGone(this);
  }

  private async ask(waiter: Waiter<Grants>): Promise<void> {
    const { client } = this;
    for (let failures = 0; this.waiter === waiter; failures++) {
      const asked = { owner: client.nextOwner(), leaseTime: client.initialLease(waiter.terms), at: now() };
      this.asked = asked;
      this.attempts++;
      const answer = this.answerTo(asked);
      // A store of the application may run code that makes the caller leave before the store takes the command.
      if (this.waiter !== waiter) this.giveUp(asked);
      const reply = await answer;
      // Cleared only after the answer: until then, a caller that leaves must release the possible grant.
      this.asked = undefined;
      // The store may have carried out the command, or may do so later.
      if (reply instanceof Error && !isRefusal(reply)) this.giveUp(asked, true);
      if (this.waiter !== waiter) return;
      if (!(reply instanceof Error)) {
        if ('busy' in reply) waiter.refuse(reply);
        else waiter.grant(reply);
        return;
      }
      if (failures === 0 && isWorthAnotherTry(reply)) continue;
      const isFinal = !isLockUnavailableError(reply) || reply.permanent;
      if (isFinal || waiter.impatient) {
        waiter.refuse(reply);
        return;
      }
      this.failure = reply;
      this.alarm.reset();
      await this.alarm.sleepUntil(now() + backoff(failures));
    }
  }

  private async answerTo({ owner, leaseTime, at: grantedAt }: Asked): Promise<Grants | Busy | Error> {
    const { names, client } = this;
    const { queue } = client.plainTerms;
    const reply = await answerOf({ name: this.name, leaseTime }, grantedAt, () =>
      client.store.acquireAll({ names, owner, leaseTime }),
    );
    if (reply instanceof Error) return reply;
    if (!reply.granted) return { ...refusedWith(reply), name: reply.name };
    return reply.fencingTokens.map((fencingToken) => ({ owner, grantedAt, leaseTime, fencingToken, queue }));
  }

  /** @param insist the command may arrive after the release */
  private giveUp({ owner, leaseTime }: Asked, insist = false): void {
    const { releaser, plainTerms } = this.client;
    const { queue } = plainTerms;
    const until = now() + leaseTime;
    for (const name of this.names)
      void releaser.release({ name, owner, leaseTime, queue }, until, { insist });
  }

  expire(waiter: Waiter<Grants>): void {
    const askedAt = this.asked?.at ?? waiter.arrivedAt;
    if (this.asked !== undefined && now() < askedAt + GRACE) {
      waiter.impatient = true;
      waiter.expireAt(askedAt + GRACE);
      return;
    }
    const reason = this.failure ?? unanswered(this.name, askedAt);
    this.leave();
    waiter.refuse(reason);
  }
}
