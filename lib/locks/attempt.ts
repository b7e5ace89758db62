import { msUntil, now } from '../client/holding/deadline.js';
import type { Tenure } from '../client/holding/tenure.js';
import { asError, type Busy } from '../client/waiting/waiting.js';
import { type AcquireCall, termsOf } from './call.js';
import { endedMeanwhile } from './multi/lease-group.js';
import type { OwnLease } from './own-lease.js';
import { isPlain, type Refusal, type Round } from './multi/rounds.js';
import type { StoreLock } from './store-lock.js';

/** ms for which a store that does not answer may keep the locks already held from other owners. */
const SILENCE = 250;

/**
 * One attempt at all members of a multi-lock, in the steps of its round. A step takes its locks in one command if they
 * are free. Otherwise it waits for a busy lock in that lock's queue, and then requests the rest, of which locks may
 * have become busy meanwhile. A round with a hold time has one lock in each step, and waits for it while it holds the
 * locks before. A round without hold time ends at the first busy lock after a grant.
 */
export class Attempt {
  readonly leases: OwnLease[] = [];
  /** Holds of plain locks. Their leases begin when all members are held, so that no code learns of them before. */
  private readonly taken = new Map<StoreLock, Tenure>();
  private readonly began = now();
  private grantedAt: number | undefined;

  /** @param call the call whose scope the members share */
  constructor(
    private readonly round: Round,
    private readonly call: AcquireCall,
  ) {}

  /** @returns the reason of the failure; undefined if all members are held */
  async run(): Promise<Refusal | undefined> {
    const refused = (step: readonly StoreLock[], answer: Busy | Error): Refusal => ({
      step,
      answer,
      waited: (this.grantedAt ?? now()) - this.began,
    });
    for (const step of this.round.steps) {
      const answer = await this.take(step).catch(asError);
      if (answer !== undefined) return refused(step, answer);
    }
    try {
      this.beginAll();
      return undefined;
    } catch (error) {
      return refused([], asError(error));
    }
  }

  /** Releases the locks that have no lease. */
  async giveBack(): Promise<void> {
    await Promise.all([...this.taken].map(([{ client }, tenure]) => client.release(tenure)));
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
  private async take(step: readonly StoreLock[]): Promise<Busy | undefined> {
    const fresh = step.filter(isPlain).filter((lock) => lock.findHold(this.call) === undefined);
    let left = fresh;
    const admitted = left[0]?.admit(this.call);
    // Without a limit there is no await, so that callers of the same turn see this request.
    if (admitted !== undefined) await admitted;
    let next = left.length > 1 ? this.knownBusy(left) : left[0];
    while (left.length > 0) {
      const busy = next === undefined ? await this.takeAtOnce(left) : undefined;
      const lock = next ?? left.find(({ name }) => name === busy?.name);
      if (busy !== undefined && (lock === undefined || this.lockTime === 0)) return busy;
      if (lock === undefined) break;
      const tenure = await lock.client.acquire(lock.name, this.callFor(lock, this.lockTime));
      if ('busy' in tenure) return { ...tenure, name: lock.name };
      this.grantedAt ??= now();
      this.taken.set(lock, tenure);
      left = left.filter((other) => other !== lock);
      next = undefined;
    }
    // These come last, because the round ends at the first busy lock after a grant.
    const isFresh = new Set<StoreLock>(fresh);
    for (const lock of step) {
      if (isFresh.has(lock)) continue;
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

  private async takeAtOnce(locks: readonly StoreLock[]): Promise<Busy | undefined> {
    const [first] = locks;
    if (first === undefined) return undefined;
    const names = locks.map(({ name }) => name);
    const tenures = await first.client.acquireAll(names, this.callFor(first, this.storeTime));
    if ('busy' in tenures) return tenures;
    this.grantedAt ??= now();
    for (const [index, lock] of locks.entries()) {
      const tenure = tenures[index];
      if (tenure !== undefined) this.taken.set(lock, tenure);
    }
    return undefined;
  }

  /** @throws LockUnavailableError if a hold ended during the wait for others, before its caller had it */
  private beginAll(): void {
    for (const [{ name }, { held }] of this.taken) if (!held) throw endedMeanwhile(name);
    const at = now();
    for (const [lock, tenure] of this.taken) {
      this.taken.delete(lock);
      this.leases.push(lock.begin(tenure, this.call, at));
    }
  }

  private callFor({ client }: StoreLock, waitTime: number): AcquireCall {
    const { call, storeTime: answerTime } = this;
    const askedAt = now();
    const times = { waitTime, answerTime, askedAt, until: askedAt + waitTime };
    return { ...call, ...times, terms: termsOf(client, call) };
  }
}
