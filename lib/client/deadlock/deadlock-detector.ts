import { clearTimer } from '../../runtime/runtime.js';
import { isLockUnavailableError } from '../../api/errors.js';
import type { LockStore } from '../../store/lock-store.js';
import { TransientMap } from '../../store/transient-map.js';
import { idleTimerAt, now } from '../holding/deadline.js';
import { Confirmation } from './confirmation.js';
import { isUnchanged, lookFrom, type SeenWait, stepOf } from './look.js';
import { type NestedWait, nestedWaits } from './nested-wait.js';
import { Reading } from './reading.js';
import { type Deadlock, latestOf } from './wait-graph.js';
import { encodeNote } from './wait-notes.js';

/** After so many ms, a wait is looked at among those of this process: most waits are shorter, and cost nothing. */
const SOON = 20;
/** How often the waits are looked through, ms. */
const TICK = 10;
/** After so many ms, a wait is told to the other processes and looked at among theirs. */
const LONG = 500;
/** How often it is told and looked at from then on, ms. */
const ROUND = 200;
/** How long a note stays when its process does not write it again, ms. */
const NOTE_LIFE = 2_000;
/** How many waits a note tells of, the longest first: a process may have thousands, and a note has to stay small. */
const MOST_TOLD = 256;
/** So many of them are looked at in one round, the others in the next ones: each look asks the store. */
const MOST_LOOKS = 32;
/** The looks at the waits of this process may take one part in so many of its time, */
const SHARE = 10;
/** and are no further apart than this, ms: the process may have stood still during a look, for any time. */
const LONGEST_PAUSE = 500;

/** A wait that is told to other processes. */
interface ToldWait {
  readonly wait: NestedWait;
  readonly confirmation: Confirmation;
}

export interface DeadlockSettings {
  readonly clientId: string;
  readonly label: string;
  /** The store refuses the notes, and will: deadlocks over processes are not found. Called once. */
  readonly onNotesRefused?: (error: Error) => void;
}

/**
 * Finds the deadlocks of the nested waits of one client. A wait that closes a circle in this process is found when it has
 * lasted for SOON. For circles over processes, each process tells what its long waits want and hold, and follows the holders
 * of what they want through what the other processes tell. It writes one key, and only while a caller waits for LONG.
 */
export class DeadlockDetector {
  /** The waits that are not told yet, each with whether it has been looked at. */
  private readonly young = new TransientMap<NestedWait, boolean>();
  private ticking: NodeJS.Timeout | undefined;
  private readonly told = new Map<NestedWait, ToldWait>();
  private stamp = 0;
  /** Which of the waits without a suspicion are looked at in the next round. */
  private turn = 0;
  private isNoted = false;
  private isRefused = false;
  private running: Promise<void> | undefined;
  private pausedUntil = -Infinity;
  private lookAt = -Infinity;
  private closed = false;
  /** Ends the pause between two rounds. */
  private wake: (() => void) | undefined;

  constructor(
    private readonly store: Pick<LockStore, 'inspect' | 'waits'>,
    private readonly settings: DeadlockSettings,
  ) {}

  /** A nested wait begins. One timer serves all of them, because most of them are over at once. */
  watch(wait: NestedWait): void {
    this.young.set(wait, false);
    this.ticking ??= idleTimerAt(wait.begunAt + TICK, this.tick);
  }

  /** A nested wait has ended. */
  over(wait: NestedWait): void {
    this.young.delete(wait);
    nestedWaits.delete(wait);
    if (!this.told.delete(wait) || this.told.size > 0) return;
    // The note is removed at once. One that tells of other waits as well is written again in the next round.
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
    // All before the first look: a wait that began later looks at those that began before it.
    for (const [wait] of due) nestedWaits.add(wait);
    const reading = new Reading(this.settings.clientId);
    for (const [wait, isLooked] of due) {
      this.young.set(wait, true);
      if (!isLooked && wait.mayBeLocal && nestedWaits.mayBlock(wait)) void this.lookHere(wait, reading);
      if (wait.begunAt <= moment - LONG) this.tell(wait);
    }
    const spent = now() - moment;
    const pause = Math.min(Math.max(TICK, SHARE * spent), LONGEST_PAUSE);
    if (this.young.size > 0) this.ticking = idleTimerAt(now() + pause, this.tick);
  };

  private tell(wait: NestedWait): void {
    this.young.delete(wait);
    this.told.set(wait, { wait, confirmation: new Confirmation() });
    this.goOn();
  }

  /** Nothing of it may throw into a timer: a look that fails is repeated in the next round. */
  private async lookHere(wait: NestedWait, reading: Reading): Promise<void> {
    const deadlock = await lookFrom(wait, reading).catch(() => undefined);
    if (deadlock !== undefined) conclude(deadlock);
  }

  /** One round after the other, as long as a wait is told or a note is left. */
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

  /** Writes what the others read. Not before the last note has arrived: see {@link Confirmation}. */
  private async note(): Promise<void> {
    const { waits } = this.store;
    const { clientId, label } = this.settings;
    if (waits === undefined || now() < this.pausedUntil) {
      this.isNoted = false;
      return;
    }
    const told = this.oldest().map(({ wait }) => wait);
    this.isNoted = told.length > 0;
    try {
      if (told.length === 0) await waits.forget(clientId);
      else
        await waits.keep(
          clientId,
          encodeNote({ process: label, stamp: ++this.stamp, waits: told.map(noted) }),
          NOTE_LIFE,
        );
    } catch (error) {
      // Without a note the others find nothing. What may still arrive has to be over before the next one is sent.
      this.isNoted = false;
      this.pausedUntil = now() + NOTE_LIFE;
      if (this.isRefused || !isLockUnavailableError(error) || !error.permanent) return;
      this.isRefused = true;
      this.settings.onNotesRefused?.(error);
    }
  }

  /** In the order in which they began to wait long. */
  private oldest(): readonly ToldWait[] {
    return [...this.told.values()].slice(0, MOST_TOLD);
  }

  private async look(): Promise<void> {
    const reading = new Reading(this.settings.clientId, this.store);
    const told = this.oldest();
    const suspects = told.filter(({ confirmation }) => confirmation.looks > 0);
    const others = told.filter(({ confirmation }) => confirmation.looks === 0);
    const room = Math.max(0, MOST_LOOKS - suspects.length);
    if (this.turn >= others.length) this.turn = 0;
    const inTurn = others.slice(this.turn, this.turn + room);
    this.turn += room;
    // Side by side, so that the round trips of many looks do not add up.
    await Promise.all([...suspects, ...inTurn].map((each) => this.lookFor(each, reading)));
  }

  private async lookFor(told: ToldWait, reading: Reading): Promise<void> {
    let deadlock: Deadlock<SeenWait> | undefined;
    try {
      deadlock = await lookFrom(told.wait, reading);
    } catch {
      // It shows neither a deadlock nor that there is none. The looks before it still count: no wait goes on again.
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
    // The one that ends waits for one more look, so that the others have seen what ends.
    const needed = Confirmation.LOOKS + Number(isLast);
    if (confirmation.looks === needed) wait.found(deadlock.cycle.map(stepOf), isLast);
  }
}

/** All members of a deadlock of this process are told, and the one that began to wait last ends. */
function conclude({ cycle, evidence }: Deadlock<SeenWait>): void {
  // Several looks find it at the same time, and the first of them ends it.
  if (!evidence.every(isUnchanged)) return;
  const last = latestOf(breaking(cycle));
  const steps = cycle.map(stepOf);
  // The one that ends is told last: what it holds is granted to the others then.
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
