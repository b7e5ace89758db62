import { clearTimer } from '../../runtime/runtime.js';
import { isLockUnavailableError } from '../../api/error-guards.js';
import { TransientMap } from '../../store/transient-map.js';
import { onOneLine } from '../../runtime/text.js';
import { idleTimerAt, now, restAfter } from '../holding/deadline.js';
import type { LockClient } from '../lock-client.js';
import { Confirmation } from './confirmation.js';
import { isUnchanged, lookFrom, type SeenWait, stepOf } from './look.js';
import { type NestedWait, nestedWaits } from './nested-wait.js';
import { Reading } from './reading.js';
import { type Deadlock, latestOf } from './wait-graph.js';
import { encodeNote } from './wait-notes.js';

/** Age, ms, at which this process checks a wait against its other waits. Most waits are shorter, and cost nothing. */
const SOON = 20;
/** Pause between two passes over the young waits, ms. */
const TICK = 10;
/** Age, ms, at which the note of this process reports a wait, and other processes' notes are read for it. */
const LONG = 500;
/** Pause between two rounds of notes and looks, ms. */
const ROUND = 200;
/** Life of a note that its process does not write again, ms. */
const NOTE_LIFE = 2_000;
/** Most waits in one note, the oldest first. A process may have thousands of waits, and a note must stay small. */
const MOST_TOLD = 256;
/** Most looks in one round, because each look asks the store. The next rounds look at the other waits. */
const MOST_LOOKS = 32;

/** A wait in the note of this process. */
interface ToldWait {
  readonly wait: NestedWait;
  readonly confirmation: Confirmation;
}

/**
 * Finds the deadlocks of the nested waits of one client. A cycle within this process is found SOON after its last wait
 * began. For cycles over several processes, each process writes a note of its long waits (locks wanted and held), and
 * follows the holders of the wanted locks through the notes of other processes. The note is one key, and exists only
 * while a caller waits for LONG.
 */
export class DeadlockDetector {
  /** Waits that are not in the note yet, each with whether this process has looked at it. */
  private readonly young = new TransientMap<NestedWait, boolean>();
  private ticking: NodeJS.Timeout | undefined;
  private readonly told = new Map<NestedWait, ToldWait>();
  private stamp = 0;
  /** Index of the first wait without a suspicion that the next round looks at. */
  private turn = 0;
  private isNoted = false;
  private isRefused = false;
  private running: Promise<void> | undefined;
  private pausedUntil = -Infinity;
  private lookAt = -Infinity;
  private closed = false;
  private wake: (() => void) | undefined;

  constructor(private readonly client: LockClient) {}

  /** One timer serves all nested waits, because most of them end at once. */
  watch(wait: NestedWait): void {
    this.young.set(wait, false);
    this.ticking ??= idleTimerAt(wait.begunAt + TICK, this.tick);
  }

  over(wait: NestedWait): void {
    this.young.delete(wait);
    nestedWaits.delete(wait);
    if (!this.told.delete(wait) || this.told.size > 0) return;
    // The process removes an empty note at once. A note with other waits is written again in the next round.
    this.wake?.();
    this.goOn();
  }

  close(): void {
    this.closed = true;
    this.wake?.();
  }

  private readonly tick = (): void => {
    const moment = now();
    this.ticking = undefined;
    if (this.closed) return;
    const due = [...this.young].filter(([{ begunAt }]) => begunAt <= moment - SOON);
    // Added before the first look, so that a later wait is checked against all earlier ones.
    for (const [wait] of due) nestedWaits.add(wait);
    const reading = new Reading(this.client.id);
    for (const [wait, isLooked] of due) {
      this.young.set(wait, true);
      if (!isLooked && wait.mayBeLocal && nestedWaits.mayBlock(wait)) void this.lookHere(wait, reading);
      if (wait.begunAt <= moment - LONG) this.tell(wait);
    }
    const pause = Math.max(TICK, restAfter(moment));
    if (this.young.size > 0) this.ticking = idleTimerAt(now() + pause, this.tick);
  };

  private tell(wait: NestedWait): void {
    this.young.delete(wait);
    this.told.set(wait, { wait, confirmation: new Confirmation() });
    this.goOn();
  }

  /** A look that fails must not throw into the timer. The next round repeats it. */
  private async lookHere(wait: NestedWait, reading: Reading): Promise<void> {
    const deadlock = await lookFrom(wait, reading).catch(() => undefined);
    if (deadlock !== undefined) conclude(deadlock);
  }

  /** Runs rounds one after the other while the process has a wait to report or a note to remove. */
  private goOn(): void {
    this.running ??= this.rounds().finally(() => {
      this.running = undefined;
      if (this.isNeeded) this.goOn();
    });
  }

  private get isNeeded(): boolean {
    return !this.closed && (this.told.size > 0 || this.isNoted);
  }

  private async rounds(): Promise<void> {
    while (this.isNeeded) {
      await this.note();
      if (this.told.size === 0) continue;
      if (now() >= this.lookAt) {
        this.lookAt = now() + ROUND;
        await this.look();
      }
      if (this.told.size > 0) await this.pause(this.lookAt);
    }
  }

  private async pause(until: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = idleTimerAt(until, resolve);
      this.wake = () => {
        clearTimer(timer);
        resolve();
      };
    });
    this.wake = undefined;
  }

  /** Writes the note for other processes, only after the last note has arrived: see {@link Confirmation}. */
  private async note(): Promise<void> {
    const { id, options, store } = this.client;
    const { waits } = store;
    if (waits === undefined || now() < this.pausedUntil) {
      this.isNoted = false;
      return;
    }
    const told = this.oldest().map(({ wait }) => wait);
    this.isNoted = told.length > 0;
    try {
      if (told.length === 0) await waits.forget(id);
      else
        await waits.keep(
          id,
          encodeNote({ process: options.label, stamp: ++this.stamp, waits: told.map(noted) }),
          NOTE_LIFE,
        );
    } catch (error) {
      // Other processes find nothing without a note. The failed request must be unable to arrive before the next note
      // is sent.
      this.isNoted = false;
      this.pausedUntil = now() + NOTE_LIFE;
      if (this.isRefused || !isLockUnavailableError(error) || !error.permanent) return;
      this.isRefused = true;
      const reason = onOneLine(error.cause instanceof Error ? error.cause.message : '');
      this.client.warn({
        code: 'deadlock-notes',
        message: `Deadlocks over processes are not found: the store refuses the note of waits (${reason})`,
      });
    }
  }

  /** In the order of their begin. */
  private oldest(): readonly ToldWait[] {
    return [...this.told.values()].slice(0, MOST_TOLD);
  }

  private async look(): Promise<void> {
    const reading = new Reading(this.client.id, this.client.store);
    const told = this.oldest();
    const suspects = told.filter(({ confirmation }) => confirmation.looks > 0);
    const others = told.filter(({ confirmation }) => confirmation.looks === 0);
    const room = Math.max(0, MOST_LOOKS - suspects.length);
    if (this.turn >= others.length) this.turn = 0;
    const inTurn = others.slice(this.turn, this.turn + room);
    this.turn += room;
    // In parallel, so that the round trips of many looks do not add up.
    await Promise.all([...suspects, ...inTurn].map((each) => this.lookFor(each, reading)));
  }

  private async lookFor(told: ToldWait, reading: Reading): Promise<void> {
    let deadlock: Deadlock<SeenWait> | undefined;
    try {
      deadlock = await lookFrom(told.wait, reading);
    } catch {
      // An error proves neither a deadlock nor its absence. Earlier looks still count: a member of a deadlock does not
      // go on by itself.
      return;
    }
    if (!this.told.has(told.wait)) return;
    told.confirmation.count(deadlock);
    if (deadlock !== undefined) this.judge(told, deadlock);
  }

  private judge({ wait, confirmation }: ToldWait, deadlock: Deadlock<SeenWait>): void {
    if (deadlock.evidence.every(({ local }) => local !== undefined)) {
      conclude(deadlock);
      return;
    }
    const isLast = latestOf(breaking(deadlock.cycle))?.local === wait;
    // The wait that the library ends takes one more look, so that the other members have seen the deadlock before.
    const needed = Confirmation.LOOKS + Number(isLast);
    if (confirmation.looks === needed) wait.found(deadlock.cycle.map(stepOf), isLast);
  }
}

/** Reports a deadlock within this process to all its members, and ends the wait that began last. */
function conclude({ cycle, evidence }: Deadlock<SeenWait>): void {
  // Several looks find one deadlock at the same time. The first look ends it.
  if (!evidence.every(isUnchanged)) return;
  const last = latestOf(breaking(cycle));
  const steps = cycle.map(stepOf);
  // The ended wait is reported last, because its end lets the store grant locks to the other members.
  const members = cycle.map((member, index) => ({ member, index }));
  members.sort((a, b) => Number(a.member === last) - Number(b.member === last));
  for (const { member, index } of members) {
    member.local?.found([...steps.slice(index), ...steps.slice(0, index)], member === last);
  }
}

const breaking = (cycle: readonly SeenWait[]): readonly SeenWait[] => cycle.filter(({ breaks }) => breaks);

const noted = ({ id, since, name, label, mode, permits, holds, breaks }: NestedWait) => ({
  id,
  since,
  name,
  label,
  mode,
  permits,
  holds,
  breaks,
});
