import type { Subscription } from 'rxjs';
import { outageOf } from '../../api/outage.js';
import { idleTimerAt, now } from '../../client/holding/deadline.js';
import { Seen } from '../../client/seen.js';
import type { LockService } from '../../module/lock-service.js';
import { type ServiceState, stateOf } from '../../module/service-state.js';
import type { Stream } from '../http/connection.js';
import type { ResolvedBoardOptions } from '../lock-board.options.js';
import { ChangeLog } from './change-log.js';
import { deadlocksIn } from './deadlocks.js';
import { changesBetween, differenceOf, holdsOnlyIn } from './difference.js';
import { withElections } from './elections.js';
import { Groups } from './groups.js';
import { pauseAfter } from './pause.js';
import { Slices } from './slices.js';
import { type Snapshot, takeSnapshot } from './snapshot.js';
import { Viewers } from './viewers.js';
import type { BoardState } from './wire.js';

/** How often the health is asked for, ms. */
const HEALTH = 5_000;
/** After so many ms of one look the page says so, and a page that waits for the look waits no longer. */
const SLOW = 3_000;
/** A look that comes later than this, in ms, reports no changes: their moments are not known. */
const GAP = 10_000;

/**
 * Follows the locks of one LockService for all viewers together: one look at the store at a time, the next one after a pause,
 * and none while no viewer is there. Each look makes the state anew, which is the same object for all until the next one.
 */
export class LockFeed {
  private readonly viewers = new Viewers();
  private readonly log = new ChangeLog();
  private readonly groups = new Groups();
  private readonly requests = new Seen();
  private readonly listening: Subscription;
  private snapshot: Snapshot | undefined;
  private shown: BoardState;
  private reading: Promise<void> | undefined;
  private lookBegan = 0;
  private readAt = -Infinity;
  private healthAt = -Infinity;
  /** Between the last look and the one after it, ms. */
  private pause = 0;
  private timer: NodeJS.Timeout | undefined;
  private isClosed = false;

  constructor(
    private readonly service: LockService,
    instance: string,
    private readonly options: Pick<ResolvedBoardOptions, 'instances' | 'readOnly' | 'limit' | 'interval'>,
  ) {
    const { instances, readOnly } = options;
    const label = stateOf(service)?.settings.label ?? '';
    this.shown = {
      ...{ at: Date.now(), instance, instances, writable: !readOnly, label, locks: [], more: false },
      ...{ groups: [], problem: null, health: null, deadlocks: [], changes: [] },
    };
    this.listening = service.events$.subscribe((event) => {
      this.groups.told(event);
      if (event.type === 'reconnected') this.hurry();
      if (event.type === 'disconnected') {
        this.healthAt = -Infinity;
        if (this.viewers.size > 0) void this.lookAtHealth();
      }
      // A request may ask hundreds of readers of this process.
      if (event.type !== 'release-requested' || this.requests.add(event.request)) this.log.told(event);
    });
  }

  /** How many viewers there are. */
  get watched(): number {
    return this.viewers.size;
  }

  /** The present state. If it is older than an interval, reads the store first, until that turns out to be slow. */
  async state(): Promise<BoardState> {
    const isOld = now() - this.readAt >= this.options.interval && this.timer === undefined;
    if (this.snapshot === undefined || isOld) await this.read();
    return this.shown;
  }

  /** Tells the viewer all that is known, and what changes from then on. */
  add(viewer: Stream): void {
    if (this.isClosed) viewer.end();
    else
      this.viewers.add(viewer, this.shown, () => {
        if (this.viewers.size === 0) this.schedule(undefined);
      });
    if (this.timer === undefined && this.reading === undefined) this.schedule(0);
  }

  /** The locks are looked at again at once: something has changed. After a look that is under way there is the usual pause. */
  hurry(): void {
    if (this.reading === undefined) this.schedule(0);
  }

  close(): void {
    this.isClosed = true;
    this.listening.unsubscribe();
    this.viewers.end();
    this.schedule(undefined);
  }

  /** The next look, if there are viewers. @param pause undefined for none */
  private schedule(pause: number | undefined): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    if (pause === undefined || this.viewers.size === 0) return;
    this.timer = idleTimerAt(now() + pause, () => {
      this.timer = undefined;
      void this.read();
    });
  }

  /**
   * One look at a time, for all that ask, and the next one after a pause while viewers are there. Resolves when the look has ended, or
   * is slow: that the store does not answer is known when it fails. Never rejects.
   */
  private read(): Promise<void> {
    this.reading ??= new Promise((resolve) => {
      const begunAt = now();
      const slow = idleTimerAt(begunAt + SLOW, () => {
        if (this.shown.problem === null) this.show({ problem: this.problem('slow', this.lookBegan) });
        resolve();
      });
      void this.look().then(() => {
        clearTimeout(slow);
        resolve();
        this.reading = undefined;
        this.readAt = now();
        const hasFailed = this.shown.problem !== null;
        this.pause = pauseAfter(this.readAt - begunAt, this.options.interval, hasFailed);
        this.schedule(this.pause);
      });
    });
    return this.reading;
  }

  private async look(): Promise<void> {
    this.lookBegan = Date.now();
    try {
      const state = stateOf(this.service);
      if (state === undefined) throw new Error('There is a double in the place of this LockService');
      const health = this.lookAtHealth();
      const seen = await this.seen(state);
      // A node that hangs must not make the looks rare.
      if (this.shown.health === null) await health;
      this.show({ ...seen, problem: null });
    } catch (error) {
      const { problem } = this.shown;
      const since = problem?.kind === 'failed' ? problem.since : Date.now();
      // The moment of the last look, because nothing is known of the present one.
      const at = this.snapshot?.at ?? Date.now();
      this.show({ at, problem: this.problem('failed', since, outageOf(error)) });
    }
  }

  private problem(kind: 'slow' | 'failed', since: number, message = ''): BoardState['problem'] {
    return { kind, since, seen: this.snapshot?.at ?? null, message };
  }

  /** All that a look at the locks tells. @throws the error of the store */
  private async seen(state: ServiceState): Promise<Partial<BoardState>> {
    const { groups, snapshot: before, shown } = this;
    const groupOf = (name: string) => groups.groupOf(name);
    const snapshot = await takeSnapshot(state, this.options.limit, before, groupOf);
    const { at, more } = snapshot;
    const slices = new Slices();
    const locks = await withElections(state, [...snapshot.locks.values()], at, shown.locks);
    const deadlocks = await deadlocksIn(state, locks, at, shown.deadlocks);
    await slices.next();
    if (before !== undefined && this.lookBegan - before.at < this.pause + GAP) {
      this.log.add(...changesBetween(before, snapshot));
      for (const { name, holder } of holdsOnlyIn(before, snapshot))
        if (holder.since !== null) groups.sawEnd(name, (before.at + at) / 2 - holder.since);
    }
    this.snapshot = snapshot;
    await slices.next();
    return { at, locks, more, groups: groups.all(), deadlocks };
  }

  /** Asked for now and then, and at each look while something is wrong. Never rejects. */
  private async lookAtHealth(): Promise<void> {
    if (now() < this.healthAt && this.shown.problem === null) return;
    this.healthAt = now() + HEALTH;
    const { status, nodes, warnings } = await this.service.health();
    this.show({ health: { status, nodes, warnings } });
  }

  /** Makes the state for all viewers from now on, and sends the difference to the present ones. */
  private show(parts: Partial<BoardState>): void {
    const before = this.shown;
    this.shown = { ...before, at: Date.now(), ...parts, changes: this.log.all };
    if (this.viewers.size === 0) return;
    const { at, locks, changes, ...rest } = this.shown;
    const last = before.changes.at(-1)?.id ?? 0;
    const lists = { ...differenceOf(before.locks, locks), changes: changes.filter(({ id }) => id > last) };
    const isNew = ([part, value]: [string, unknown]) =>
      JSON.stringify(value) !== JSON.stringify(before[part as keyof BoardState]);
    const fresh = [
      ...Object.entries(lists).filter(([, list]) => list.length > 0),
      ...Object.entries(rest).filter(isNew),
    ];
    if (fresh.length > 0) this.viewers.tell({ at, ...(Object.fromEntries(fresh) as Partial<BoardState>) });
  }
}
