import { isLockUnavailableError, asAnswer, type Found } from '../../api/error-guards.js';
import { afterPortion, portionsOf } from '../../runtime/portions.js';
import { StandingTimer } from '../../runtime/standing-timer.js';
import type { HoldState, RenewRequest } from '../../store/lock-store.js';
import { TransientMap } from '../../store/transient-map.js';
import type { LockClient } from '../lock-client.js';
import { leaseWithin, now } from './deadline.js';
import { RenewalLane } from './renewal-lane.js';
import { releasedError, type Tenure } from './tenure.js';

/** First pause after a failed renewal, ms; doubled each time. The lease ends soon, so the first retries are quick. */
const FIRST_RETRY = 50;

/**
 * ms between two looks at a fixed lease: a third of the lease, as for renewals, but at least 250 ms. A lease shorter
 * than that minimum ends before, and costs no command.
 */
const betweenLooks = ({ granted }: Tenure): number => Math.max(granted / 3, 250);

/**
 * Renews the leases of this process, each after a third of its time, together with all leases that are due soon after,
 * so that many leases cost few commands. A failed renewal is repeated until the lease's deadline. The tenure announces
 * the end of its lease itself. In the same rounds, the watchdog asks the store whether fixed leases still exist,
 * because they may have been deleted or taken.
 */
export class Watchdog {
  /** Each tenure with the moment of its next renewal or look. */
  private readonly watched = new TransientMap<Tenure, number>();
  /** By node, so that a silent node delays no renewals on other nodes. */
  private readonly lanes = new Map<string, RenewalLane>();
  private readonly timer: StandingTimer;
  /** Of the tenures that have not ended, the first renewal or look is not due before. */
  private dueAt = Infinity;

  constructor(private readonly client: LockClient) {
    this.timer = new StandingTimer(
      (moment, callback) => client.setTimer(moment, callback),
      () => {
        // The timer may be that of a tenure that has ended.
        if (this.dueAt > now()) this.wakeAt(this.dueAt);
        else void this.renewDue();
      },
    );
  }

  /**
   * Guards the end of a tenure, and renews it or looks at it until then.
   * @param since the moment of the grant; the first renewal follows a third of the lease later
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

  /** After a suspension of the machine, the timer is late: runs all due renewals now. */
  catchUp(): void {
    this.timer.clear();
    void this.renewDue();
  }

  /** The grant of the first tenure, which is the oldest one but for the times of answers, on the monotonic clock. */
  get oldestGrant(): number | undefined {
    for (const { grantedAt } of this.watched.keys()) return grantedAt;
    return undefined;
  }

  /**
   * The least time until a deadline of a renewed lease, as a share of the lease. A renewal is due at two thirds, so less
   * than one third means failed renewals.
   */
  headroomShare(): number | undefined {
    const time = now();
    let least: number | undefined;
    for (const { isFixed, deadline, granted } of this.watched.keys()) {
      if (!isFixed) least = Math.min(least ?? Infinity, (deadline - time) / granted);
    }
    return least;
  }

  /**
   * Makes a tenure last at least `leaseTime` from now. If the store does not answer, it is asked once more within the
   * lease, because a reset connection is mostly back after a pause.
   * @throws LockLostError if the store has no such hold
   * @throws LockUnavailableError if the store did not answer; the lease is unchanged
   */
  async extend(tenure: Tenure, leaseTime: number): Promise<void> {
    try {
      await this.extendOnce(tenure, leaseTime);
    } catch (error) {
      if (!isLockUnavailableError(error) || error.permanent) throw error;
      if (tenure.held)
        await new Promise<void>((resolve) => this.client.setTimer(now() + FIRST_RETRY, resolve));
      if (!tenure.held) throw tenure.loss ?? releasedError(tenure);
      await this.extendOnce(tenure, leaseTime);
    }
  }

  private async extendOnce(tenure: Tenure, leaseTime: number): Promise<void> {
    const sentAt = now();
    const { keptUntil } = tenure;
    // Set before the answer: if the tenure ends first, the extension still keeps the lock in the store.
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
   * Asks the store about holds at once, without a renewal, and ends the tenures of holds that are gone.
   * @returns for each tenure a promise that rejects if the store did not answer
   */
  look(tenures: readonly Tenure[]): readonly Promise<void>[] {
    const answers = this.ask(tenures.map(({ name, owner }) => ({ name, owner, leaseTime: 0 })));
    return tenures.map(async (tenure, index) => {
      const state = await answers[index];
      if (state !== 'held') lose(tenure, state);
    });
  }

  private wakeAt(moment: number): void {
    if (moment === Infinity) return;
    this.dueAt = Math.min(this.dueAt, moment);
    this.timer.set(moment, now());
  }

  private sleep(): void {
    this.dueAt = Infinity;
    this.timer.rest();
  }

  private async renewDue(): Promise<void> {
    const time = now();
    this.dueAt = Infinity;
    let next = Infinity;
    for (const portion of portionsOf(this.watched)) {
      const due = new Map<string, Tenure[]>();
      for (const [tenure, renewAt] of portion) {
        // `held` announces a deadline that has passed.
        if (tenure.renewing || !tenure.held) continue;
        // Renewals that are due within a tenth of the lease join this round.
        if (renewAt > time + this.lengthOf(tenure) / 10) {
          next = Math.min(next, renewAt);
          continue;
        }
        tenure.guard();
        const node = this.client.store.nodeOf?.(tenure.name) ?? '';
        const onOneNode = due.get(node);
        if (onOneNode === undefined) due.set(node, [tenure]);
        else onOneNode.push(tenure);
      }
      for (const [node, tenures] of due) this.laneOf(node).add(tenures);
      const turned = afterPortion(portion);
      if (turned !== undefined) await turned;
    }
    // All may have ended meanwhile.
    if (this.watched.size > 0) this.wakeAt(next);
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
          // A failed look needs no retry, because the next round repeats it.
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
      this.client.events.next({
        type: 'renewal-failed',
        names: tenures.map(({ name }) => name),
        labels: tenures.map(({ label }) => label),
        error: isLockUnavailableError(error) ? (error.cause ?? error) : error,
      });
    }
  }

  /** The length of the next lease. */
  private lengthOf({ terms }: Tenure): number {
    return this.client.leaseBounds.within(terms.leaseTime);
  }

  private requestFor(tenure: Tenure, sentAt: number): RenewRequest {
    const { name, owner, holdUntil, isFixed } = tenure;
    return { name, owner, leaseTime: isFixed ? 0 : leaseWithin(this.lengthOf(tenure), holdUntil - sentAt) };
  }

  /** A store of the application may throw. Nothing may throw from a timer. */
  private ask(requests: readonly RenewRequest[]): readonly Promise<Found<HoldState>>[] {
    try {
      return this.client.store.renew(requests).map((answer) => answer.catch(asAnswer));
    } catch (error) {
      return requests.map(() => Promise.reject(error as Error));
    }
  }
}

function lose(tenure: Tenure, found: Found<Exclude<HoldState, 'held'>> = 'deleted'): void {
  if (typeof found === 'string') tenure.lose(found);
  else tenure.lose('taken', found);
}
