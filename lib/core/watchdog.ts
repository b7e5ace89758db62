import { isLockUnavailableError } from '../lock.errors.js';
import type { LockStore, RenewRequest } from '../stores/lock-store.js';
import { leaseWithin, now, timerAt } from './deadline.js';
import { releasedError, type Tenure } from './tenure.js';

/** First pause after a renewal that failed, ms; doubled each time. The lease ends soon, so the first tries are quick. */
const FIRST_RETRY = 50;

interface RenewalTime {
  renewAt: number;
}

/**
 * Renews the leases of this process: each at a third of its time, together with all that are due soon after, so that
 * many leases cost few commands. A renewal that fails is tried again until the lease's own deadline; the end of the
 * lease itself is the tenure's to announce.
 */
export class Watchdog {
  private readonly watched = new Map<Tenure, RenewalTime>();
  private timer: NodeJS.Timeout | undefined;
  private wakesAt = Infinity;

  constructor(
    private readonly store: LockStore,
    private readonly onFailure: (names: readonly string[], error: unknown) => void,
  ) {}

  watch(tenure: Tenure): void {
    const renewAt = now() + tenure.terms.leaseTime / 3;
    this.watched.set(tenure, { renewAt });
    this.wakeAt(renewAt);
  }

  forget(tenure: Tenure): void {
    if (this.watched.delete(tenure) && this.watched.size === 0) this.sleep();
  }

  /** ms until the lease that is closest to its deadline ends; undefined when nothing is watched. */
  headroom(): number | undefined {
    let least: number | undefined;
    for (const tenure of this.watched.keys()) {
      least = Math.min(least ?? Infinity, tenure.deadline - now());
    }
    return least;
  }

  /**
   * Makes a tenure last at least `leaseTime` from now.
   * @throws LockLostError when the store does not know it any more
   * @throws LockUnavailableError when the store did not answer; the lease is as it was
   */
  async extend(tenure: Tenure, leaseTime: number): Promise<void> {
    const sentAt = now();
    const [renewal] = this.store.renew([{ name: tenure.name, owner: tenure.owner, leaseTime }]);
    const state = await renewal;
    if (state === 'held') tenure.prolong(sentAt, leaseTime);
    else tenure.lose(state ?? 'deleted');
    if (!tenure.held) throw tenure.loss ?? releasedError(tenure);
  }

  private wakeAt(moment: number): void {
    if (moment >= this.wakesAt) return;
    clearTimeout(this.timer);
    this.wakesAt = moment;
    this.timer = timerAt(moment, () => {
      this.wakesAt = Infinity;
      this.renewDue();
    });
  }

  private sleep(): void {
    clearTimeout(this.timer);
    this.wakesAt = Infinity;
  }

  private renewDue(): void {
    const sentAt = now();
    const due: [Tenure, RenewalTime][] = [];
    let next = Infinity;
    for (const entry of this.watched) {
      const [tenure, { renewAt }] = entry;
      // A tenth of the lease early is soon enough to come along; a deadline that has passed is announced here and now.
      if (tenure.renewing || !tenure.held) continue;
      if (renewAt <= sentAt + tenure.terms.leaseTime / 10) due.push(entry);
      else next = Math.min(next, renewAt);
    }
    if (due.length > 0) this.renew(due, sentAt);
    if (this.watched.size > 0) this.wakeAt(next);
  }

  private renew(due: [Tenure, RenewalTime][], sentAt: number): void {
    const requests = due.map(([tenure]) => requestFor(tenure, sentAt));
    const failures = new Map<unknown, string[]>();
    const renewals = this.store.renew(requests).map(async (renewal, index) => {
      const [tenure, time] = due[index] as [Tenure, RenewalTime];
      tenure.renewing = true;
      try {
        const { leaseTime } = requests[index] as RenewRequest;
        const state = await renewal;
        if (state === 'held') tenure.prolong(sentAt, leaseTime);
        else tenure.lose(state);
        time.renewAt = sentAt + tenure.terms.leaseTime / 3;
      } catch (error) {
        // Only an outage's first failure is news.
        if (tenure.failures++ === 0) {
          const names = failures.get(error);
          if (names === undefined) failures.set(error, [tenure.name]);
          else names.push(tenure.name);
        }
        const pause = FIRST_RETRY * 2 ** Math.min(tenure.failures - 1, 10);
        time.renewAt = now() + Math.min(pause, tenure.terms.leaseTime / 6);
      } finally {
        tenure.renewing = false;
        if (this.watched.has(tenure)) this.wakeAt(time.renewAt);
      }
    });
    void Promise.all(renewals).then(() => {
      for (const [error, names] of failures) {
        this.onFailure(names, isLockUnavailableError(error) ? (error.cause ?? error) : error);
      }
    });
  }
}

function requestFor(tenure: Tenure, sentAt: number): RenewRequest {
  const leaseTime = leaseWithin(tenure.terms.leaseTime, tenure.holdUntil - sentAt);
  return { name: tenure.name, owner: tenure.owner, leaseTime };
}
