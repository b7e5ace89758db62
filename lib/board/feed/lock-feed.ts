import type { Subscription } from 'rxjs';
import { idleTimerAt, now } from '../../client/holding/deadline.js';
import { Seen } from '../../client/seen.js';
import type { LockService } from '../../module/lock-service.js';
import { stateOf } from '../../module/service-state.js';
import type {
  BoardElection,
  BoardHealth,
  BoardOwn,
  BoardProblem,
  BoardState,
  BoardUpdate,
} from '../view/wire.js';
import { ChangeLog } from './change-log.js';
import { changesBetween, differenceOf } from './difference.js';
import { Deadlocks } from './deadlocks.js';
import { electionsOf } from './elections.js';
import { failureOf } from './failure.js';
import { boardHealthOf } from '../view/health.js';
import { changeOf } from '../view/own-events.js';
import { pauseAfter } from './pause.js';
import { type Snapshot, takeSnapshot } from './snapshot.js';
import { eventOf, type Viewer, Viewers } from './viewers.js';
import { oncePer } from '../once-per.js';

/** How often the health is asked for, ms. */
const HEALTH = 5_000;
/** After so many ms of one look the page says so. */
const SLOW = 3_000;
/** A look that comes later than this, in ms, reports no changes: their moments are not known. */
const GAP = 10_000;

export interface FeedOptions {
  readonly instance: string;
  readonly instances: readonly string[];
  readonly writable: boolean;
  readonly limit: number;
  readonly interval: number;
}

const stateEventOf = oncePer((state: BoardState) => eventOf('state', state));

const NOTHING: BoardOwn = { held: 0, waiting: 0 };

/**
 * Follows the locks of one LockService for all viewers together: one look at the store at a time, the next one after a pause,
 * and none while no viewer is there.
 */
export class LockFeed {
  private readonly viewers = new Viewers(() => stateEventOf(this.present));
  private readonly log = new ChangeLog();
  private readonly requests = new Seen();
  private readonly listening: Subscription;
  private snapshot: Snapshot | undefined;
  /** What viewers that come now are told; undefined after a change. */
  private shown: BoardState | undefined;
  private problem: BoardProblem | null = null;
  private health: BoardHealth | null = null;
  private own: BoardOwn = NOTHING;
  private elections: readonly BoardElection[] = [];
  private readonly deadlocks: Deadlocks;
  /** The state that viewers have, as JSON: equal parts are not sent again. */
  private readonly told = new Map<string, string>();
  private toldChange = 0;
  private reading: Promise<void> | undefined;
  private lookBegan = 0;
  private readAt = -Infinity;
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
    this.deadlocks = new Deadlocks(stateOf(service));
    this.listening = service.events$.subscribe((event) => {
      if (event.type === 'reconnected') this.hurry();
      // A request may ask hundreds of readers of this process.
      if (event.type === 'release-requested' && !this.requests.add(event.request)) return;
      const change = changeOf(event);
      if (change === undefined) return;
      this.log.add(change);
      if (event.type === 'deadlock') this.deadlocks.told(event.cycle, event.broken);
    });
  }

  /** How many viewers there are. */
  get watched(): number {
    return this.viewers.size;
  }

  /** The present state. If it is older than an interval, reads the store first, for at most `patience` ms. */
  async state(patience = 2_000): Promise<BoardState> {
    const isOld = now() - this.readAt >= this.options.interval && this.timer === undefined;
    if (this.snapshot === undefined || isOld) await this.readWithin(patience);
    return this.present;
  }

  /** The present state, without a look at the store: the same object until something changes. */
  private get present(): BoardState {
    return (this.shown ??= this.stateNow());
  }

  private stateNow(): BoardState {
    const { instance, instances, writable } = this.options;
    const { snapshot, problem, health, own, elections, log } = this;
    const deadlocks = this.deadlocks.all;
    return {
      at: Date.now(),
      ...{ instance, instances, writable, label: this.label },
      locks: [...(snapshot?.locks.values() ?? [])],
      more: snapshot?.more ?? false,
      ...{ problem, health, own, elections, deadlocks },
      changes: log.all.filter(({ id }) => id <= this.toldChange),
    };
  }

  /** Tells the viewer all that is known, and what changes from then on. */
  add(viewer: Viewer): void {
    if (this.isClosed) {
      viewer.end();
      return;
    }
    this.viewers.add(viewer);
    if (this.timer === undefined && this.reading === undefined) this.schedule(0);
  }

  remove(viewer: Viewer): void {
    this.viewers.remove(viewer);
    if (this.viewers.size > 0) return;
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  /** The locks are looked at again at once: a viewer has changed something. */
  hurry(): void {
    if (this.viewers.size === 0) return;
    this.isOvertaken = this.reading !== undefined;
    clearTimeout(this.timer);
    this.timer = undefined;
    if (!this.isOvertaken) this.schedule(0);
  }

  close(): void {
    this.isClosed = true;
    this.listening.unsubscribe();
    clearTimeout(this.timer);
    this.viewers.end();
  }

  private get label(): string {
    return stateOf(this.service)?.settings.label ?? '';
  }

  private schedule(pause: number): void {
    this.timer = idleTimerAt(now() + pause, () => {
      this.timer = undefined;
      void this.read();
    });
  }

  private async readWithin(patience: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const reading = this.read();
    const tooLate = new Promise<void>((resolve) => {
      timer = idleTimerAt(now() + patience, () => {
        this.isSlow();
        resolve();
      });
    });
    await Promise.race([reading, tooLate]);
    clearTimeout(timer);
  }

  /** One look at a time, for all that ask, and the next one after a pause while viewers are there. Never rejects. */
  private read(): Promise<void> {
    const begunAt = now();
    this.reading ??= this.look().finally(() => {
      this.reading = undefined;
      this.readAt = now();
      const { interval } = this.options;
      this.pause = this.isOvertaken ? 0 : pauseAfter(this.readAt - begunAt, interval, this.problem !== null);
      this.isOvertaken = false;
      if (this.viewers.size > 0 && this.timer === undefined) this.schedule(this.pause);
    });
    return this.reading;
  }

  private async look(): Promise<void> {
    this.lookBegan = Date.now();
    const slow = idleTimerAt(now() + SLOW, () => {
      this.isSlow();
      this.tell({ at: Date.now() });
    });
    const before = this.snapshot;
    let update: BoardUpdate = { at: Date.now() };
    try {
      const health = this.lookAtHealth();
      const { limit } = this.options;
      const leaseTime = stateOf(this.service)?.settings.leaseTime ?? Infinity;
      const snapshot = await takeSnapshot(this.service, limit, before, leaseTime);
      this.own = stateOf(this.service)?.counts() ?? NOTHING;
      this.elections = await electionsOf(stateOf(this.service));
      await this.deadlocks.look(snapshot.locks.values(), snapshot.at);
      if (before !== undefined && this.lookBegan - before.at < this.pause + GAP)
        for (const change of changesBetween(before, snapshot)) this.log.add(change);
      const { set, gone } = differenceOf(before, snapshot);
      update = { at: snapshot.at, ...(set.length > 0 ? { set } : {}), ...(gone.length > 0 ? { gone } : {}) };
      this.snapshot = snapshot;
      this.problem = null;
      await health;
    } catch (error) {
      this.failed(failureOf(error));
    }
    clearTimeout(slow);
    this.tell(update);
  }

  /** Never rejects. */
  private async lookAtHealth(): Promise<void> {
    if (now() < this.healthAt) return;
    this.healthAt = now() + HEALTH;
    this.health = boardHealthOf(await this.service.health());
  }

  private failed(message: string): void {
    const since = this.problem?.kind === 'failed' ? this.problem.since : Date.now();
    this.problem = { kind: 'failed', since, seen: this.snapshot?.at ?? null, message };
  }

  /** A look that does not end is slow. That the store does not answer is known when it fails. */
  private isSlow(): void {
    if (this.problem !== null) return;
    this.problem = { kind: 'slow', since: this.lookBegan, seen: this.snapshot?.at ?? null, message: '' };
    this.shown = undefined;
  }

  /** Adds what else is new. */
  private tell(update: BoardUpdate): void {
    const { problem, health, own, elections } = this;
    const deadlocks = this.deadlocks.all;
    const more = this.snapshot?.more ?? false;
    const fresh: Record<string, unknown> = {};
    for (const [field, value] of Object.entries({ more, problem, health, own, elections, deadlocks })) {
      const json = JSON.stringify(value);
      if (this.told.get(field) !== json) fresh[field] = value;
      this.told.set(field, json);
    }
    this.shown = undefined;
    const changes = this.log.since(this.toldChange);
    this.toldChange = this.log.last;
    if (changes.length > 0) fresh.changes = changes;
    const whole: BoardUpdate = { ...update, ...fresh };
    if (Object.keys(whole).length > 1) this.viewers.tell(whole);
  }
}
