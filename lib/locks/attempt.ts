import { msUntil, now } from '../client/holding/deadline.js';
import type { Tenure } from '../client/holding/tenure.js';
import { untilGivenBack } from '../client/waiting/answer-within.js';
import { asError, type Busy } from '../client/waiting/waiting.js';
import { type AcquireCall, termsOf } from './call.js';
import { endedMeanwhile } from './multi/lease-group.js';
import type { PlainLock } from './plain-lock.js';
import type { OwnLease } from './own-lease.js';
import { isPlain, type Refusal, type Round } from './multi/rounds.js';
import type { StoreLock } from './store-lock.js';

/** ms for which a store that does not answer may keep the locks already held from other owners. */
const SILENCE = 250;

/**
 * One attempt at all members of a multi-lock, in the steps of its round. A step takes its locks in one command if they
 * are free. Otherwise it waits for a busy lock in that lock's queue, and then requests the rest, of which locks may
 * have become busy meanwhile. A round with a hold time takes the locks in order, and waits for a lock while it holds
 * the locks before it. A round without hold time ends at the first busy lock after a grant.
 */
export class Attempt {
  readonly leases: OwnLease[] = [];
  private readonly began = now();
  private grantedAt: number | undefined;

  /** @param call the call whose scope the members share */
  constructor(
    private readonly round: Round,
    private readonly call: AcquireCall,
  ) {}

  /** @returns the reason of the failure; undefined if all members are held */
  async run(): Promise<Refusal | undefined> {
    for (const step of this.round.steps) {
      const answer = await this.take(step).catch(asError);
      if (answer !== undefined) return { step, answer, waited: (this.grantedAt ?? now()) - this.began };
    }
    return undefined;
  }

  /** ms for which the attempt may wait for a busy lock now. */
  get lockTime(): number {
    return msUntil(Math.min(this.call.until, (this.grantedAt ?? Infinity) + this.round.hold));
  }

  /**
   * ms for which the attempt may wait for an answer of the store now. 0 for a caller that does not wait: as long as the
   * store takes.
   */
  get storeTime(): number {
    const { until, askedAt } = this.call;
    if (until <= askedAt) return 0;
    const silence = Math.max(this.round.hold, SILENCE);
    return Math.max(1, msUntil(Math.min(until, (this.grantedAt ?? Infinity) + silence)));
  }

  /** The attempt holds a lock from now on. */
  granted(): void {
    this.grantedAt ??= now();
  }

  /** Takes the locks that the scope does not hold yet, and re-enters the others. */
  private async take(step: readonly StoreLock[]): Promise<Busy | undefined> {
    const fresh = step.filter(isPlain).filter((lock) => lock.findHold(this.call) === undefined);
    const others = step.filter((lock) => !fresh.some((taken) => taken === lock));
    if (fresh.length > 1) {
      const busy = await this.takeTogether(fresh);
      if (busy !== undefined) return busy;
    } else others.unshift(...fresh);
    for (const lock of others) {
      const lease = await lock.acquireLease(this.callFor(lock, this.lockTime));
      if ('busy' in lease) return { ...lease, name: lock.name };
      this.leases.push(lease);
      this.granted();
    }
    return undefined;
  }

  private async takeTogether(locks: readonly PlainLock[]): Promise<Busy | undefined> {
    const taken = new Map<PlainLock, Tenure>();
    try {
      const busy = await this.takeAll(locks, taken);
      if (busy === undefined) this.leases.push(...this.beginAll(locks, taken));
      else await this.giveBack(taken);
      return busy;
    } catch (error) {
      await this.giveBack(taken);
      throw error;
    }
  }

  /** @returns the lock in the way, undefined if all are held */
  private async takeAll(
    locks: readonly PlainLock[],
    taken: Map<PlainLock, Tenure>,
  ): Promise<Busy | undefined> {
    const mayHold = this.round.hold > 0;
    const admitted = locks[0]?.admit(this.call);
    // Without a limit there is no await, so that callers of the same turn see this request.
    if (admitted !== undefined) await admitted;
    for (let left = locks; left.length > 0;) {
      let busy = this.knownBusy(left, taken) ?? (await this.takeAtOnce(left, taken));
      if (busy === undefined) return undefined;
      let at = indexOf(busy, left);
      while (mayHold && at > 0) {
        const before: Busy | undefined = await this.takeAtOnce(left.slice(0, at), taken);
        if (before === undefined) break;
        busy = before;
        at = indexOf(busy, left);
      }
      const lock = left[at];
      if (lock === undefined || this.lockTime === 0) return busy;
      const tenure = await lock.client.acquire(lock.name, this.callFor(lock, this.lockTime));
      if ('busy' in tenure) return { ...tenure, name: lock.name };
      this.granted();
      taken.set(lock, tenure);
      left = mayHold ? left.slice(at + 1) : left.filter((other) => other !== lock);
    }
    return undefined;
  }

  /**
   * A lock that is busy as far as this process knows, so that a request for all would waste a command: the lock that
   * refused the last round, or a lock with waiters in this process. The former comes first, because its hold may be
   * long: a wait for another lock would be useless, and would keep that lock from other owners.
   */
  private knownBusy(locks: readonly PlainLock[], taken: ReadonlyMap<PlainLock, Tenure>): Busy | undefined {
    if (this.lockTime === 0) return undefined;
    const { first } = this.round;
    const refused = taken.size === 0 ? locks.find(({ name }) => name === first) : undefined;
    const lock = refused ?? locks.find(({ name, client }) => client.callers.isAwaited(name));
    return lock && { busy: true, holder: undefined, name: lock.name };
  }

  private async takeAtOnce(
    locks: readonly PlainLock[],
    taken: Map<PlainLock, Tenure>,
  ): Promise<Busy | undefined> {
    const [first] = locks;
    if (first === undefined) return undefined;
    const names = locks.map(({ name }) => name);
    const tenures = await first.client.acquireAll(names, this.callFor(first, this.storeTime));
    if ('busy' in tenures) return tenures;
    this.granted();
    for (const [index, tenure] of tenures.entries()) {
      const lock = locks[index];
      if (lock !== undefined) taken.set(lock, tenure);
    }
    return undefined;
  }

  /** @throws LockUnavailableError if a lease ended during the wait for others, before its caller had it */
  private beginAll(locks: readonly PlainLock[], taken: ReadonlyMap<PlainLock, Tenure>): OwnLease[] {
    for (const [{ name }, { held }] of taken) if (!held) throw endedMeanwhile(name);
    const at = now();
    return locks.flatMap((lock) => {
      const tenure = taken.get(lock);
      return tenure === undefined ? [] : [lock.begin(tenure, this.call, at)];
    });
  }

  private async giveBack(taken: ReadonlyMap<PlainLock, Tenure>): Promise<void> {
    const [first] = taken.keys();
    if (first === undefined) return;
    const released = first.client.together(() =>
      Promise.all([...taken].map(([{ client }, tenure]) => client.release(tenure))),
    );
    await untilGivenBack(released, this.call);
  }

  private callFor({ client }: StoreLock, waitTime: number): AcquireCall {
    const { call, storeTime: answerTime } = this;
    const askedAt = now();
    const times = { waitTime, answerTime, askedAt, until: askedAt + waitTime };
    return { ...call, ...times, terms: termsOf(client, call) };
  }
}

const indexOf = ({ name }: Busy, locks: readonly PlainLock[]): number =>
  Math.max(
    0,
    locks.findIndex((lock) => lock.name === name),
  );
