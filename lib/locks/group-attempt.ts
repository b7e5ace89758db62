import { now } from '../core/deadline.js';
import type { Scope } from '../core/scope.js';
import type { Tenure } from '../core/tenure.js';
import type { Busy, WaitRequest } from '../core/waiting.js';
import type { AcquireCall } from './acquire-call.js';
import { untilGivenBack } from './giving-back.js';
import { endedMeanwhile } from './lease-group.js';
import type { PlainLock } from './plain-lock.js';
import type { OwnLease } from './own-lease.js';
import type { WaitLimits } from './wait-limits.js';

type Options = AcquireCall;

/**
 * Takes the locks of a group in one step if they are free. A lock that is busy is waited for in its own queue, and the rest
 * is asked for once that lock is held. By then others may be busy. If the attempt may hold locks while it waits, it takes
 * them in their order: a lock is waited for while the locks before it are held. Otherwise the attempt gives back what it
 * has got.
 */
export class GroupAttempt {
  private readonly tenures = new Map<PlainLock, Tenure>();

  constructor(
    private readonly locks: readonly PlainLock[],
    private readonly scope: Scope | undefined,
    private readonly options: Options,
    private readonly limits: WaitLimits,
  ) {}

  async run(): Promise<readonly OwnLease[] | Busy> {
    try {
      const busy = await this.takeAll();
      if (busy === undefined) return this.beginAll();
      await this.giveBack();
      return busy;
    } catch (error) {
      await this.giveBack();
      throw error;
    }
  }

  /** @returns which lock is in the way, undefined when all are held */
  private async takeAll(): Promise<Busy | undefined> {
    const { limits } = this;
    const admitted = this.locks[0]?.admit(this.options, this.scope, limits.until);
    if (admitted !== undefined) await admitted;
    for (let left = this.locks; left.length > 0;) {
      let busy = (limits.forLock > 0 ? this.knownBusy(left) : undefined) ?? (await this.takeAtOnce(left));
      if (busy === undefined) return undefined;
      let at = indexOf(busy, left);
      while (limits.holds && at > 0) {
        const before: Busy | undefined = await this.takeAtOnce(left.slice(0, at));
        if (before === undefined) break;
        busy = before;
        at = indexOf(busy, left);
      }
      const lock = left[at];
      if (lock === undefined || limits.forLock === 0) return busy;
      const refusal = await this.waitFor(lock);
      if (refusal !== undefined) return refusal;
      left = limits.holds ? left.slice(at + 1) : left.filter((other) => other !== lock);
    }
    return undefined;
  }

  /**
   * A lock that is busy as far as this process knows, so that a request for all would be a wasted command. It is the lock
   * that was in the way just now, or one that callers of this process wait for. The former may be held for long: a wait for
   * another lock would be useless, and would keep that lock from other owners.
   */
  private knownBusy(locks: readonly PlainLock[]): Busy | undefined {
    const { first } = this.limits;
    const refused = this.tenures.size === 0 ? locks.find(({ name }) => name === first) : undefined;
    const lock = refused ?? locks.find(({ name, client }) => client.callers.isAwaited(name));
    return lock && { busy: true, holder: undefined, name: lock.name };
  }

  private async takeAtOnce(locks: readonly PlainLock[]): Promise<Busy | undefined> {
    const [first] = locks;
    if (first === undefined) return undefined;
    const names = locks.map(({ name }) => name);
    const request = this.request(first, this.limits.forStore);
    const tenures = await first.client.acquireAll(names, request);
    if ('busy' in tenures) return tenures;
    this.limits.granted();
    tenures.forEach((tenure, index) => {
      const lock = locks[index];
      if (lock !== undefined) this.tenures.set(lock, tenure);
    });
    return undefined;
  }

  private async waitFor(lock: PlainLock): Promise<Busy | undefined> {
    const tenure = await lock.client.acquire(lock.name, this.request(lock, this.limits.forLock));
    if ('busy' in tenure) return { ...tenure, name: lock.name };
    this.limits.granted();
    this.tenures.set(lock, tenure);
    return undefined;
  }

  private request(lock: PlainLock, waitTime: number): WaitRequest {
    return lock.request({ ...this.options, waitTime }, this.scope);
  }

  /** @throws LockUnavailableError when one has ended while others were waited for: no caller has had it */
  private beginAll(): OwnLease[] {
    for (const [{ name }, { held }] of this.tenures) if (!held) throw endedMeanwhile(name);
    const { scope, options, limits } = this;
    const at = now();
    const leases: OwnLease[] = [];
    for (const lock of this.locks) {
      const tenure = this.tenures.get(lock);
      if (tenure !== undefined) leases.push(lock.begin(tenure, scope, scope, options, limits.askedAt, at));
    }
    return leases;
  }

  private async giveBack(): Promise<void> {
    const [first] = this.locks;
    if (first === undefined || this.tenures.size === 0) return;
    const released = first.client.together(() =>
      Promise.all([...this.tenures].map(([{ client }, tenure]) => client.release(tenure))),
    );
    await untilGivenBack(released, this.limits.until, this.options.signal);
  }
}

const indexOf = ({ name }: Busy, locks: readonly PlainLock[]): number =>
  Math.max(
    0,
    locks.findIndex((lock) => lock.name === name),
  );
