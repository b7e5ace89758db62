import { isLockUnavailableError, asAnswer, type Found } from '../../api/errors.js';
import { clearTimer } from '../../runtime/runtime.js';
import type { HoldState, LockStore, RenewRequest } from '../../store/lock-store.js';
import { TransientMap } from '../../store/transient-map.js';
import { leaseWithin, now, type timerAt } from './deadline.js';
import type { LeaseBounds } from './lease-bounds.js';
import { RenewalLane } from './renewal-lane.js';
import { releasedError, type Tenure } from './tenure.js';

/** First pause after a renewal that failed, ms; doubled each time. The lease ends soon, so the first tries are quick. */
const FIRST_RETRY = 50;

/**
 * ms from one look at a fixed lease to the next: a third of the lease, as for renewals, but at least 250 ms. A short lease
 * is over before that minimum, and costs no further command.
 */
const betweenLooks = ({ granted }: Tenure): number => Math.max(granted / 3, 250);

/**
 * Renews the leases of this process. Each lease is renewed at a third of its time, together with all leases that are due
 * soon after, so that many leases cost few commands. A renewal that fails is tried again until the lease's own deadline.
 * The tenure itself announces the end of the lease. A fixed lease is looked at instead, in the same rounds: it may have
 * been deleted or taken away.
 */
export class Watchdog {
  /** Each with the moment of its next renewal or look. */
  private readonly watched = new TransientMap<Tenure, number>();
  /** By node, so that a node that does not answer delays no renewals of other nodes. */
  private readonly lanes = new Map<string, RenewalLane>();
  private timer: NodeJS.Timeout | undefined;
  private wakesAt = Infinity;

  constructor(
    private readonly store: LockStore,
    private readonly bounds: LeaseBounds,
    private readonly onFailure: (tenures: readonly Tenure[], error: unknown) => void,
    private readonly setTimer: typeof timerAt,
  ) {}

  /**
   * Sees to it that the tenure ends when it is over, and renews it or looks at it until then.
   * @param since when the store has granted what it has; the first renewal comes a third of that later
   */
  watch(tenure: Tenure, since: number): void {
    const due = since + (tenure.isFixed ? betweenLooks(tenure) : tenure.granted / 3);
    if (tenure.isFixed && due >= tenure.deadline) {
      tenure.guard();
      return;
    }
    this.watched.set(tenure, due);
    this.wakeAt(due);
  }

  forget(tenure: Tenure): void {
    if (this.watched.delete(tenure) && this.watched.size === 0) this.sleep();
  }

  /** The machine has been suspended: what is due is due now, whatever the timer says. */
  catchUp(): void {
    this.sleep();
    this.renewDue();
  }

  /** ms until the lease that is closest to its deadline ends; undefined when nothing is renewed. */
  headroom(): number | undefined {
    let least: number | undefined;
    for (const tenure of this.watched.keys()) {
      if (!tenure.isFixed) least = Math.min(least ?? Infinity, tenure.deadline - now());
    }
    return least;
  }

  /** As `headroom`, as a share of the lease. A renewal is due at two thirds, so less than one third is bad news. */
  headroomShare(): number | undefined {
    let least: number | undefined;
    for (const { isFixed, deadline, granted } of this.watched.keys()) {
      if (!isFixed) least = Math.min(least ?? Infinity, (deadline - now()) / granted);
    }
    return least;
  }

  /** Whether a lease is close to its end because renewals do not succeed. */
  get stuck(): boolean {
    for (const tenure of this.watched.keys()) if (tenure.overdue) return true;
    return false;
  }

  /**
   * Makes a tenure last at least `leaseTime` from now. A connection that has been reset is mostly back after a pause, so the
   * store is asked once more while the lease lasts.
   * @throws LockLostError when the store does not know it any more
   * @throws LockUnavailableError when the store did not answer; the lease is as it was
   */
  async extend(tenure: Tenure, leaseTime: number): Promise<void> {
    try {
      await this.extendOnce(tenure, leaseTime);
    } catch (error) {
      if (!isLockUnavailableError(error) || error.permanent) throw error;
      if (tenure.held) await new Promise<void>((resolve) => this.setTimer(now() + FIRST_RETRY, resolve));
      if (!tenure.held) throw tenure.loss ?? releasedError(tenure);
      await this.extendOnce(tenure, leaseTime);
    }
  }

  private async extendOnce(tenure: Tenure, leaseTime: number): Promise<void> {
    const sentAt = now();
    const { keptUntil } = tenure;
    // From here on: the tenure may be over before the answer comes, and the store would keep the lock without a holder.
    const mayBeKeptUntil = Math.max(keptUntil, sentAt + leaseTime);
    tenure.keptUntil = mayBeKeptUntil;
    const [renewal] = this.ask([{ name: tenure.name, owner: tenure.owner, leaseTime }]);
    let state: Found<HoldState> | undefined;
    try {
      state = await renewal;
    } catch (error) {
      tenure.keptUntil = Math.max(tenure.keptUntil, now() + leaseTime);
      throw error;
    }
    if (tenure.keptUntil === mayBeKeptUntil) tenure.keptUntil = keptUntil;
    if (state === 'held') tenure.prolong(sentAt, leaseTime);
    else lose(tenure, state);
    if (tenure.held && tenure.isFixed) this.watch(tenure, sentAt);
    if (!tenure.held) throw tenure.loss ?? releasedError(tenure);
  }

  /**
   * Asks the store about holds at once, and prolongs none. The tenures of holds that are gone are lost.
   * @returns for each a promise that rejects when the store did not answer
   */
  look(tenures: readonly Tenure[]): readonly Promise<void>[] {
    const answers = this.ask(tenures.map(({ name, owner }) => ({ name, owner, leaseTime: 0 })));
    return tenures.map(async (tenure, index) => {
      const state = await answers[index];
      if (state !== 'held') lose(tenure, state);
    });
  }

  private wakeAt(moment: number): void {
    if (moment >= this.wakesAt) return;
    clearTimer(this.timer);
    this.wakesAt = moment;
    this.timer = this.setTimer(moment, () => {
      this.wakesAt = Infinity;
      this.renewDue();
    });
  }

  private sleep(): void {
    clearTimer(this.timer);
    this.wakesAt = Infinity;
  }

  private renewDue(): void {
    const time = now();
    const due = new Map<string, Tenure[]>();
    let next = Infinity;
    for (const [tenure, renewAt] of this.watched) {
      // A deadline that has passed is announced here and now.
      if (tenure.renewing || !tenure.held) continue;
      // A renewal that is due within a tenth of the lease is sent along.
      if (renewAt > time + this.lengthOf(tenure) / 10) {
        next = Math.min(next, renewAt);
        continue;
      }
      tenure.guard();
      const node = this.store.nodeOf?.(tenure.name) ?? '';
      const onOneNode = due.get(node);
      if (onOneNode === undefined) due.set(node, [tenure]);
      else onOneNode.push(tenure);
    }
    for (const [node, tenures] of due) this.laneOf(node).add(tenures);
    this.wakeAt(next);
  }

  private laneOf(node: string): RenewalLane {
    let lane = this.lanes.get(node);
    if (lane === undefined) {
      lane = new RenewalLane((share) => this.renew(share));
      this.lanes.set(node, lane);
    }
    return lane;
  }

  private async renew(due: readonly Tenure[]): Promise<void> {
    const sentAt = now();
    const requests = due.map((tenure) => this.requestFor(tenure, sentAt));
    const renewals = this.ask(requests);
    const failures = new Map<unknown, Tenure[]>();
    await Promise.all(
      due.map(async (tenure, index) => {
        let renewAt = sentAt + (tenure.isFixed ? betweenLooks(tenure) : this.lengthOf(tenure) / 3);
        try {
          const state = await renewals[index];
          if (state !== 'held') lose(tenure, state);
          else if (!tenure.isFixed) tenure.prolong(sentAt, requests[index]?.leaseTime ?? 0);
        } catch (error) {
          // A look that got no answer needs no retry: the next round comes.
          if (!tenure.isFixed) {
            // Only the first failure of an outage is reported.
            if (tenure.failures++ === 0) {
              failures.set(error, [...(failures.get(error) ?? []), tenure]);
            }
            const pause = FIRST_RETRY * 2 ** Math.min(tenure.failures - 1, 10);
            renewAt = now() + Math.min(pause, this.lengthOf(tenure) / 6);
          }
        }
        tenure.renewing = false;
        if (!this.watched.has(tenure)) return;
        this.watched.set(tenure, renewAt);
        this.wakeAt(renewAt);
      }),
    );
    for (const [error, tenures] of failures) {
      this.onFailure(tenures, isLockUnavailableError(error) ? (error.cause ?? error) : error);
    }
  }

  /** The lease that a renewal takes. */
  private lengthOf({ terms }: Tenure): number {
    return this.bounds.within(terms.leaseTime);
  }

  private requestFor(tenure: Tenure, sentAt: number): RenewRequest {
    const { name, owner, holdUntil, isFixed } = tenure;
    return { name, owner, leaseTime: isFixed ? 0 : leaseWithin(this.lengthOf(tenure), holdUntil - sentAt) };
  }

  /** Nothing may throw from a timer, whatever the store does. */
  private ask(requests: readonly RenewRequest[]): readonly Promise<Found<HoldState>>[] {
    try {
      return this.store.renew(requests).map((answer) => answer.catch(asAnswer));
    } catch (error) {
      return requests.map(() => Promise.reject(error as Error));
    }
  }
}

function lose(tenure: Tenure, found: Found<Exclude<HoldState, 'held'>> = 'deleted'): void {
  if (typeof found === 'string') tenure.lose(found);
  else tenure.lose('taken', found);
}
