import { msUntil, now } from '../../client/holding/deadline.js';
import type { Tenure } from '../../client/holding/tenure.js';
import { answerWithin, untilGivenBack } from '../../client/waiting/answer-within.js';
import { asError } from '../../runtime/thrown.js';
import type { Busy } from '../../client/waiting/waiting.js';
import { LockUnavailableError } from '../../api/errors.js';
import { type AcquireCall, termsOf } from '../call.js';
import type { OwnLease } from '../own-lease.js';
import type { ScopedLock } from '../scoped-lock.js';
import type { StoreLock } from '../store-lock.js';
import { LeaseGroup } from './lease-group.js';
import { isPlain, type Refusal, type Round } from './rounds.js';

/** ms for which a store that does not answer may keep the locks already held from other owners. */
const SILENCE = 250;

/**
 * One attempt at all members of a multi-lock, in the steps of its round. A step takes its locks in one command if they
 * are free. Otherwise it waits for a busy lock in that lock's queue, and then requests the rest, of which locks may
 * have become busy meanwhile. A round with a hold time has one lock in each step, and waits for it while it holds the
 * locks before. A round without hold time ends at the first busy lock after a grant.
 */
export class Attempt {
  private readonly leases: OwnLease[] = [];
  /** Holds of plain locks. Their leases begin when all members are held, so that no code learns of them before. */
  private readonly taken = new Map<StoreLock, Tenure>();
  private readonly began = now();
  private grantedAt: number | undefined;

  /** @param call the call whose scope the members share */
  constructor(
    private readonly lock: ScopedLock,
    private readonly round: Round,
    private readonly call: AcquireCall,
  ) {}

  /** @returns the lease on all members, or the reason of the failure; then it has given back the locks */
  async run(): Promise<LeaseGroup | Refusal> {
    let step: Refusal['step'] = [];
    try {
      for (step of this.round.steps) {
        const busy = await this.take(step);
        if (busy !== undefined) return await this.refused(step, busy);
      }
      return await this.group();
    } catch (error) {
      return await this.refused(step, asError(error));
    }
  }

  private async refused(step: Refusal['step'], answer: Busy | Error): Promise<Refusal> {
    const { taken, leases, lock, call } = this;
    const waited = (this.grantedAt ?? now()) - this.began;
    const released = lock.client.together(() =>
      Promise.all([
        ...Array.from(taken, ([{ client }, tenure]) => client.release(tenure)),
        ...leases.map((lease) => lease.release()),
      ]),
    );
    await untilGivenBack(released, { until: call.until, signal: call.signal });
    return { step, answer, waited };
  }

  /** ms for which the attempt may wait for a busy lock now. */
  private get lockTime(): number {
    return msUntil(Math.min(this.call.until, (this.grantedAt ?? Infinity) + this.round.hold));
  }

  /**
   * ms for which the attempt may wait for an answer of the store now. 0 for a caller that does not wait: as long as the
   * store takes.
   */
  private get storeTime(): number {
    const { until, askedAt } = this.call;
    if (until <= askedAt) return 0;
    const silence = Math.max(this.round.hold, SILENCE);
    return Math.max(1, msUntil(Math.min(until, (this.grantedAt ?? Infinity) + silence)));
  }

  /** Takes the locks that the scope does not hold yet, and re-enters the others. */
  private async take(step: Refusal['step']): Promise<Busy | undefined> {
    let left = step.filter((lock) => isPlain(lock) && lock.findHold(this.call) === undefined);
    const admitted = left[0]?.admit(this.call);
    // Without a limit there is no await, so that callers of the same turn see this request.
    if (admitted !== undefined) await admitted;
    let next = left.length > 1 ? this.knownBusy(left) : left[0];
    while (left.length > 0) {
      const busy = await (next === undefined ? this.askAll(left) : this.waitFor(next));
      const mayWait = next === undefined && this.lockTime > 0;
      next = mayWait ? left.find(({ name }) => name === busy?.name) : undefined;
      if (busy === undefined) left = left.filter((lock) => !this.taken.has(lock));
      else if (next === undefined) return busy;
    }
    // These come last, because the round ends at the first busy lock after a grant.
    for (const lock of step) {
      if (this.taken.has(lock)) continue;
      const lease = await lock.acquireLease(this.callFor(lock, this.lockTime));
      if ('busy' in lease) return { ...lease, name: lock.name };
      this.leases.push(lease);
      this.grantedAt ??= now();
    }
    return undefined;
  }

  /**
   * A lock that is busy as far as this process knows, so that a request for all would waste a command: the lock that
   * refused the last round, or a lock with waiters in this process. The former comes first, because its hold may be
   * long: a wait for another lock would be useless, and would keep that lock from other owners.
   */
  private knownBusy(locks: readonly StoreLock[]): StoreLock | undefined {
    if (this.lockTime === 0) return undefined;
    const refused = locks.find(({ name }) => name === this.round.first);
    return refused ?? locks.find(({ name, client }) => client.callers.isAwaited(name));
  }

  /** Waits for a lock in its queue. */
  private async waitFor(lock: StoreLock): Promise<Busy | undefined> {
    const tenure = await lock.client.acquire(lock.name, this.callFor(lock, this.lockTime));
    if ('busy' in tenure) return { ...tenure, name: lock.name };
    this.grantedAt ??= now();
    this.taken.set(lock, tenure);
    return undefined;
  }

  /** Requests several locks in one command, without a wait for a busy one. */
  private async askAll(locks: readonly StoreLock[]): Promise<Busy | undefined> {
    const [first] = locks as readonly [StoreLock];
    const names = locks.map(({ name }) => name);
    const tenures = await first.client.acquireAll(names, this.callFor(first, this.storeTime));
    if ('busy' in tenures) return tenures;
    this.grantedAt ??= now();
    for (const [index, tenure] of tenures.entries()) this.taken.set(locks[index] ?? first, tenure);
    return undefined;
  }

  /** @throws LockUnavailableError if a hold ended during the wait for others, before its caller had it */
  private async group(): Promise<LeaseGroup> {
    const { lock, call, round } = this;
    for (const [{ name }, { held }] of this.taken) if (!held) throw endedMeanwhile(name);
    const at = now();
    for (const [member, tenure] of this.taken) {
      this.taken.delete(member);
      this.leases.push(member.begin(tenure, call, at));
    }
    const group = new LeaseGroup(lock.name, lock.groupOf(call), this.leases, lock.client);
    const { terms, signal, until } = call;
    // A round in order has held its first members for a while, and a fixed lease begins with the grant of the last one.
    if (round.hold > 0 && !terms.renewed) {
      const extended = group.extend(terms.leaseTime, { signal });
      await answerWithin(extended, lock.name, { until }).catch(() => {
        throw endedMeanwhile(lock.name);
      });
    }
    if (!group.held) throw endedMeanwhile(lock.name);
    return group;
  }

  private callFor({ client }: StoreLock, waitTime: number): AcquireCall {
    const { call, storeTime: answerTime } = this;
    const askedAt = now();
    const times = { waitTime, answerTime, askedAt, until: askedAt + waitTime };
    return { ...call, ...times, terms: termsOf(client, call) };
  }
}

/** Names no holder, because no holder has refused a request. */
function endedMeanwhile(name: string): LockUnavailableError {
  const cause = new Error('a lease ended before the last of the locks was taken');
  return new LockUnavailableError(name, { cause });
}
