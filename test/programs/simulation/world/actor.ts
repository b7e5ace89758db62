import { Random } from '../../chaos/random.js';
import { type Event, PHASE } from './queue.js';
import { inThisScope } from './scopes.js';
import type { World } from './world.js';

/** The wall clock of the world when it begins. */
const EPOCH = 1_700_000_000_000;

/** How far clocks may go wrong, as a share of the time: together less than the 1 % that leases allow for. */
const DRIFT = 0.004;

/** ms by which a timer may be late. */
const LATENESS = 1;

let indexes = 0;

export interface ActorOptions {
  /** ms by which its wall clock is ahead. */
  readonly ahead?: number;
}

/** A timer as Node's code sees it. */
export class SimulatedTimer {
  constructor(
    readonly event: Event,
    public repeats?: () => void,
  ) {}

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }
}

/**
 * A process or a server: its clocks, its timers, its random numbers. It can be paused, also in the midst of a turn of its
 * event loop, and it can be killed.
 */
export class Actor {
  readonly index: number;
  readonly random: Random;
  alive = true;
  /** Its code is going to run, and not that of another process. */
  onTurn: (() => void) | undefined;
  /** True time before which it runs nothing. */
  busyUntil = 0;
  /** ms by which its wall clock has been stepped. */
  step = 0;
  /** When it did not run although it should have. */
  readonly lags: { from: number; to: number }[] = [];
  /** Stops at one of the next looks at its clock. */
  stall: { looks: number; time: number } | undefined;
  private readonly rate: number;
  private readonly born: number;
  private readonly ahead: number;
  private readonly zero: number;

  constructor(
    readonly world: World,
    readonly name: string,
    { ahead = 0 }: ActorOptions = {},
  ) {
    this.index = ++indexes;
    this.random = new Random(world.random.between(0, 2 ** 31));
    this.rate = 1 + (this.random.next() * 2 - 1) * DRIFT;
    this.born = world.time;
    this.ahead = ahead;
    this.zero = this.random.next() * 1_000;
  }

  /** Begins to count actors anew, so that a world is the same wherever it is made. */
  static restart(): void {
    indexes = 0;
  }

  /** True time as far as its turn has come. */
  get time(): number {
    return Math.max(this.world.time, this.busyUntil);
  }

  /** ms of its monotonic clock. */
  monotonic(time = this.time): number {
    return this.zero + (time - this.born) * this.rate;
  }

  /** A look of its own code at its clock. */
  look(): number {
    const { stall } = this;
    if (stall !== undefined && --stall.looks <= 0) {
      this.stall = undefined;
      this.pause(stall.time);
    }
    return this.monotonic();
  }

  get timeOrigin(): number {
    return EPOCH + this.born + this.ahead - this.zero;
  }

  wall(): number {
    return Math.floor(this.exactWall());
  }

  /** ms of its wall clock, with fractions. */
  exactWall(): number {
    return this.timeOrigin + this.monotonic() + this.step;
  }

  /** ms of true time for a time of its own. */
  trueTime(own: number): number {
    return own / this.rate;
  }

  /** True time of a moment of its monotonic clock. */
  momentOf(own: number): number {
    return this.born + (own - this.zero) / this.rate;
  }

  pause(time: number): void {
    const from = this.time;
    this.busyUntil = from + time;
    this.lags.push({ from, to: this.busyUntil });
  }

  kill(): void {
    this.alive = false;
  }

  setTimer(callback: () => void, time = 0): SimulatedTimer {
    const run = inThisScope(callback);
    return new SimulatedTimer(this.world.at(this.dueIn(time), run, this, PHASE.timer));
  }

  setRepeatingTimer(callback: () => void, time: number): SimulatedTimer {
    const bound = inThisScope(callback);
    const again = () => {
      if (timer.repeats === undefined) return;
      bound();
      (timer as { event: Event }).event = this.world.at(this.dueIn(time), again, this, PHASE.timer);
    };
    const timer = new SimulatedTimer(this.world.at(this.dueIn(time), again, this, PHASE.timer), again);
    return timer;
  }

  clearTimer(timer: SimulatedTimer | undefined): void {
    if (timer === undefined) return;
    timer.event.cancelled = true;
    delete timer.repeats;
  }

  afterInput(callback: () => void): SimulatedTimer {
    const run = inThisScope(callback);
    return new SimulatedTimer(this.world.at(this.time, run, this, PHASE.afterInput));
  }

  sleep(time: number): Promise<void> {
    return new Promise((resolve) => {
      this.world.at(this.dueIn(time), resolve, this, PHASE.timer);
    });
  }

  uuid(): string {
    const part = () => this.random.between(0, 0xffffffff).toString(16).padStart(8, '0');
    const [a, b, c, d] = [part(), part(), part(), part()];
    return `${a}-${b.slice(0, 4)}-4${b.slice(5)}-8${c.slice(1, 4)}-${c.slice(4)}${d}`;
  }

  /** Node counts a timer from the beginning of the turn, and in whole ms. */
  private dueIn(time: number): number {
    const whole = Math.max(1, Math.trunc(time));
    const after = this.trueTime(whole) + this.random.next() * LATENESS - this.world.earliness;
    return this.world.time + Math.max(0, after);
  }
}
