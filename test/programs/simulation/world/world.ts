import { AsyncResource } from 'node:async_hooks';
import { Random } from '../../chaos/random.js';
import type { Actor } from './actor.js';
import { Digest } from './digest.js';
import { type Event, EventQueue, PHASE } from './queue.js';

/** How many events are run in one round of the real event loop. */
const BATCH = 64;

const asError = (error: unknown): Error =>
  error instanceof Error ? error : new Error('not an error', { cause: error });

/**
 * All that happens, in an order that the seed decides: one event after the other, each with all that follows from it
 * without any wait. True time jumps from event to event.
 */
export class World {
  /** ms of true time, which no actor sees. */
  time = 0;
  events = 0;
  readonly digest = new Digest();
  readonly random: Random;
  /** ms by which all timers may fire early, less than 1. Node notes the beginning of a timer in whole ms, rounded down. */
  earliness = 0;
  /** What code of the simulation itself has thrown. */
  failure: Error | undefined;
  private readonly queue = new EventQueue();
  private readonly turns: { readonly actor: Actor; readonly run: () => void }[] = [];
  private numbers = 0;

  constructor(readonly seed: number) {
    this.random = new Random(seed);
  }

  at(time: number, run: () => void, actor?: Actor, phase: number = PHASE.input): Event {
    const due = Math.max(time, this.time);
    if (Number.isNaN(due)) throw new Error('an event has no time');
    const event = { at: due, phase, due, number: ++this.numbers, actor, cancelled: false, run };
    this.queue.push(event);
    return event;
  }

  after(time: number, run: () => void, actor?: Actor): Event {
    return this.at(this.time + time, run, actor);
  }

  /** A turn of a process that begins at once, after the one that runs, and that nothing in the world has led to. */
  turn(actor: Actor, run: () => void): void {
    this.turns.push({ actor, run });
  }

  /** For code of the simulation itself. */
  sleep(time: number): Promise<void> {
    return new Promise((resolve) => {
      this.after(time, resolve);
    });
  }

  /** Runs until it is over, or nothing is left to do, or too much has been done. */
  async run(isOver: () => boolean, most: number): Promise<void> {
    // Events run in no async context but that of the code that asked for them.
    const outside = new AsyncResource('World');
    await new Promise<void>((resolve, reject) => {
      let ended = false;
      const end = () => {
        if (ended) return;
        ended = true;
        if (this.failure === undefined) resolve();
        else reject(this.failure);
      };
      const step = () => {
        if (ended) return;
        if (isOver() || this.failure !== undefined || this.events >= most || !this.step()) end();
      };
      // Promises and process.nextTick run empty between two immediates, as between any two callbacks of Node.
      const round = () => {
        for (let index = 0; index < BATCH; index++) setImmediate(step);
        if (!ended) setImmediate(round);
      };
      outside.runInAsyncScope(round);
    });
    outside.emitDestroy();
  }

  private step(): boolean {
    const turn = this.turns.shift();
    if (turn !== undefined) {
      this.carryOut(turn);
      return true;
    }
    for (;;) {
      const event = this.queue.pop();
      if (event === undefined) return false;
      const { actor } = event;
      if (event.cancelled || actor?.alive === false) continue;
      if (actor !== undefined && actor.busyUntil > event.at) {
        event.at = actor.busyUntil;
        this.queue.push(event);
        continue;
      }
      this.time = event.at;
      this.events++;
      this.digest.add(event.at, (actor?.index ?? 0) * 4 + event.phase);
      this.carryOut(event);
      return true;
    }
  }

  private carryOut(turn: Pick<Event, 'actor' | 'run'>): void {
    try {
      turn.actor?.onTurn?.();
      turn.run();
    } catch (error) {
      this.failure ??= asError(error);
    }
  }
}
