import type { Subscription } from 'rxjs';
import { idleTimerAt, now } from '../../client/holding/deadline.js';
import { Seen } from '../../client/seen.js';
import type { LockService } from '../../module/lock-service.js';
import { stateOf } from '../../module/service-state.js';
import { ChangeLog } from './change-log.js';
import { Deadlocks } from './deadlocks.js';
import { changesBetween, differenceOf } from './difference.js';
import { failureOf } from './failure.js';
import { Groups } from './groups.js';
import { pauseAfter } from './pause.js';
import { type Snapshot, takeSnapshot } from './snapshot.js';
import { type Viewer, Viewers } from './viewers.js';
import type { BoardState } from './wire.js';

/** How often the health is asked for, ms. */
const HEALTH = 5_000;
/** After so many ms of one look the page says so. */
const SLOW = 3_000;
/** A look that comes later than this, in ms, reports no changes: their moments are not known. */
const GAP = 10_000;

type FeedOptions = Pick<BoardState, 'instance' | 'instances' | 'writable'> & {
  readonly limit: number;
  readonly interval: number;
};

/**
 * Follows the locks of one LockService for all viewers together: one look at the store at a time, the next one after a pause,
 * and none while no viewer is there. Each look makes the state anew, which is the same object for all until the next one.
 */
export class LockFeed {
  private readonly viewers = new Viewers(() => this.shown);
  private readonly log = new ChangeLog();
  private readonly groups = new Groups();
  private readonly requests = new Seen();
  private readonly deadlocks: Deadlocks;
  private readonly listening: Subscription;
  private snapshot: Snapshot | undefined;
  private shown: BoardState;
  private reading: Promise<void> | undefined;
  private lookBegan = 0;
  private readAt = -Infinity;
  private health: BoardState['health'] = null;
  private healthAt = -Infinity;
  /** Between the last look and the one after it, ms. */
  private pause = 0;
  /** The result of the present look may be old already. */
  private isOvertaken = false;
  private timer: NodeJS.Timeout | undefined;
  private isClosed = false;

  constructor(
    private readonly service: LockService,
    private readonly options: FeedOptions,
  ) {
    const { instance, instances, writable } = options;
    this.deadlocks = new Deadlocks(stateOf(service));
    this.shown = {
      ...{ at: Date.now(), instance, instances, writable, label: '', locks: [], more: false, groups: [] },
      ...{ problem: null, health: null, elections: [], deadlocks: [], changes: [] },
    };
    this.listening = service.events$.subscribe((event) => {
      this.groups.told(event);
      if (event.type === 'disconnected') this.healthAt = -Infinity;
      if (event.type === 'reconnected') this.hurry();
      // A request may ask hundreds of readers of this process.
      if (event.type !== 'release-requested' || this.requests.add(event.request)) this.log.told(event);
    });
  }

  /** How many viewers there are. */
  get watched(): number {
    return this.viewers.size;
  }

  /** The present state. If it is older than an interval, reads the store first, for at most `patience` ms. */
  async state(patience = 2_000): Promise<BoardState> {
    const isOld = now() - this.readAt >= this.options.interval && this.timer === undefined;
    if (this.snapshot !== undefined && !isOld) return this.shown;
    let timer: NodeJS.Timeout | undefined;
    const tooLate = new Promise<void>((resolve) => {
      timer = idleTimerAt(now() + patience, resolve);
    }).then(() => {
      this.isSlow();
    });
    await Promise.race([this.read(), tooLate]);
    clearTimeout(timer);
    return this.shown;
  }

  /** Tells the viewer all that is known, and what changes from then on. */
  add(viewer: Viewer): void {
    if (this.isClosed) viewer.end();
    else this.viewers.add(viewer);
    if (this.timer === undefined && this.reading === undefined) this.schedule(0);
  }

  remove(viewer: Viewer): void {
    this.viewers.remove(viewer);
    if (this.viewers.size === 0) this.schedule(undefined);
  }

  /** The locks are looked at again at once: a viewer has changed something. */
  hurry(): void {
    this.isOvertaken = this.reading !== undefined;
    this.schedule(this.isOvertaken ? undefined : 0);
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

  /** One look at a time, for all that ask, and the next one after a pause while viewers are there. Never rejects. */
  private read(): Promise<void> {
    const begunAt = now();
    this.reading ??= this.look().finally(() => {
      this.reading = undefined;
      this.readAt = now();
      const hasFailed = this.shown.problem !== null;
      this.pause = this.isOvertaken ? 0 : pauseAfter(this.readAt - begunAt, this.options.interval, hasFailed);
      this.isOvertaken = false;
      if (this.timer === undefined) this.schedule(this.pause);
    });
    return this.reading;
  }

  private async look(): Promise<void> {
    this.lookBegan = Date.now();
    const slow = idleTimerAt(now() + SLOW, () => {
      this.isSlow();
    });
    const health = this.lookAtHealth();
    try {
      const seen = await this.seen();
      // A node that hangs must not make the looks rare.
      if (this.health === null) await health;
      this.show({ ...seen, problem: null });
    } catch (error) {
      const { problem } = this.shown;
      const since = problem?.kind === 'failed' ? problem.since : Date.now();
      const seen = this.snapshot?.at ?? null;
      // The moment of the last look, because nothing is known of the present one.
      this.show({
        at: seen ?? Date.now(),
        problem: { kind: 'failed', since, seen, message: failureOf(error) },
      });
    }
    clearTimeout(slow);
    void health.then(() => {
      if (this.health !== this.shown.health) this.show({});
    });
  }

  /** All that a look at the locks tells. @throws the error of the store */
  private async seen(): Promise<Partial<BoardState>> {
    const { service, groups, snapshot: before } = this;
    const snapshot = await takeSnapshot(service, this.options.limit, before, (name) => groups.groupOf(name));
    const { at, more } = snapshot;
    const locks = [...snapshot.locks.values()];
    await this.deadlocks.look(locks, at);
    if (before !== undefined && this.lookBegan - before.at < this.pause + GAP)
      this.log.add(
        ...changesBetween(before, snapshot, ({ name }, { since }) => {
          if (since !== null) groups.sawEnd(name, (before.at + at) / 2 - since);
        }),
      );
    this.snapshot = snapshot;
    const elections = (stateOf(service)?.elections() ?? []).map(({ name }) => name).sort();
    return { at, locks, more, elections, groups: groups.all(), deadlocks: this.deadlocks.standing };
  }

  /** Asked for now and then, and at each look while something is wrong. Never rejects. */
  private async lookAtHealth(): Promise<void> {
    if (now() < this.healthAt && this.shown.problem === null) return;
    this.healthAt = now() + HEALTH;
    const { status, nodes, warnings } = await this.service.health();
    this.health = { status, nodes, warnings };
  }

  /** A look that does not end is slow. That the store does not answer is known when it fails. */
  private isSlow(): void {
    const seen = this.snapshot?.at ?? null;
    if (this.shown.problem === null)
      this.show({ problem: { kind: 'slow', since: this.lookBegan, seen, message: '' } });
  }

  /** Makes the state for all viewers from now on, and sends the difference to the present ones. */
  private show(parts: Partial<BoardState>): void {
    const before = this.shown;
    const label = stateOf(this.service)?.settings.label ?? '';
    this.shown = { ...before, at: Date.now(), label, ...parts, health: this.health, changes: this.log.all };
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
