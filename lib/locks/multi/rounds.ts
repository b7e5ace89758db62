import { random } from '../../runtime/runtime.js';
import type { Busy } from '../../client/waiting/waiting.js';
import { PlainLock } from '../plain-lock.js';
import type { StoreLock } from '../store-lock.js';

/** How many times another member may turn out to be busy when the member that was waited for has been granted. */
const MOST_REFUSALS = 4;
/**
 * How long the first round in order may wait while it holds something, ms: at least, at least for each member, and at most.
 */
const SHORTEST_HOLD = 100;
const SHORTEST_HOLD_EACH = 10;
const LONGEST_FIRST_HOLD = 500;

/** Locks that are taken together: plain locks of one location, or one lock of any kind. */
type Step = readonly StoreLock[];

/** How one attempt asks for the members. */
export interface Round {
  /** The first is waited for while nothing is held. */
  readonly steps: readonly Step[];
  /** For how long the other steps are waited for while the steps before them are held, ms. */
  readonly hold: number;
  /** The lock that is waited for first if the first step has several: the one that was in the way. */
  readonly first?: string | undefined;
}

/** Why a round has failed. */
export interface Refusal {
  readonly step: Step;
  readonly answer: Busy | Error;
  /** For how long the first was waited for, ms. */
  readonly waited: number;
}

export const isPlain = (lock: StoreLock): lock is PlainLock => lock instanceof PlainLock;

/** The same for locks that one command can take. */
const groupKeyOf = (lock: StoreLock): string =>
  isPlain(lock) ? `${lock.client.id} at ${lock.client.store.locationOf(lock.name)}` : lock.identity;

/**
 * The members in steps.
 * @param inOrder only neighbours are taken together, so that the steps keep the members' order; else as many as possible
 */
export function stepsOf(members: readonly StoreLock[], { inOrder = false } = {}): readonly Step[] {
  const steps: StoreLock[][] = [];
  const byKey = new Map<string, StoreLock[]>();
  for (const member of members) {
    const key = groupKeyOf(member);
    const step = byKey.get(key);
    if (step !== undefined && (!inOrder || step === steps.at(-1))) {
      step.push(member);
      continue;
    }
    const begun = [member];
    steps.push(begun);
    byKey.set(key, begun);
  }
  return steps;
}

/**
 * In which order a multi-lock asks its members, and whether it holds some while it waits for others.
 *
 * Rounds without holding come first. The member that was in the way is waited for in its own queue, and when it is granted
 * the others are asked for at once. If one of them is busy, everything is given back and that one is waited for next. So a
 * multi-lock that waits for one long hold keeps no other name busy. But two locks with steady queues are never free in that
 * moment: each alone is granted in 32 ms, both together never.
 *
 * After MOST_REFUSALS such rounds the members are taken in order, each waited for while the members before it are held. All
 * processes use the same order, by name. So multi-locks cannot wait for each other in a circle: each holds only members
 * that come before the one it waits for. A caller that holds single locks by hand and waits for another, out of this order,
 * can close a circle with it. One name on two services can do the same. Therefore a round in order is given up, with all
 * that it holds, `hold` ms after its first member was granted. `hold` is the longest wait that was seen for a member, times
 * the number of members, and doubled each time, so that it is long enough in the end for queues of any length. The member
 * that was in the way then is waited for first, while nothing is held: a member that stays busy costs the others `hold`,
 * and not the whole wait.
 */
export class Rounds {
  private round: Round;
  /** Refusals in a row, of rounds without holding. */
  private refusals = 0;
  private longestWait = 0;
  /** How many rounds in order have been given up. */
  private givenUp = 0;

  /**
   * @param members in the order that all processes use
   * @param steps the same, as few as possible
   * @param mostHold ms; a longer `hold` would use up the time for which the lease is wanted
   */
  constructor(
    private readonly members: readonly StoreLock[],
    steps: readonly Step[],
    private readonly mostHold: number,
  ) {
    this.round = { steps, hold: 0 };
  }

  get current(): Round {
    return this.round;
  }

  next({ step: by, answer, waited }: Refusal): Round {
    const { steps, hold } = this.round;
    // An error does not say which owner holds which member.
    if (!(answer instanceof Error)) {
      // What has held in vain is worth fewer rounds without holding.
      this.refusals = hold > 0 ? MOST_REFUSALS / 2 : this.refusals + 1;
      if (hold > 0) this.givenUp++;
      else this.longestWait = Math.max(this.longestWait, waited);
    }
    if (this.refusals >= MOST_REFUSALS) {
      this.round = { steps: stepsOf(this.members, { inOrder: true }), hold: this.holdTime() };
    } else {
      // The two sides of a read-write lock stay together, and in their order: a reader cannot become the writer.
      const isFirst = ([lock]: Step) => Number(lock?.location === by[0]?.location);
      const first = answer instanceof Error ? undefined : answer.name;
      this.round = { steps: steps.toSorted((a, b) => isFirst(b) - isFirst(a)), hold: 0, first };
    }
    return this.round;
  }

  private holdTime(): number {
    const forEach = Math.max(this.longestWait, SHORTEST_HOLD_EACH);
    const first = Math.min(Math.max(forEach * this.members.length, SHORTEST_HOLD), LONGEST_FIRST_HOLD);
    // Two multi-locks that are in each other's way do not give up at the same moment.
    const spread = 0.75 + random() / 2;
    return Math.min(first * 2 ** this.givenUp * spread, this.mostHold);
  }
}
