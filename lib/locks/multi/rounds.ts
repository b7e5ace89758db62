import { random } from '../../runtime/runtime.js';
import type { Busy } from '../../client/waiting/waiting.js';
import type { StoreLock } from '../store-lock.js';

/** Rounds without holding that may be refused before the first round in order. */
const MOST_REFUSALS = 4;
/** Limits of the first `hold`, ms: the shortest, the shortest per member, and the longest. */
const SHORTEST_HOLD = 100;
const SHORTEST_HOLD_EACH = 10;
const LONGEST_FIRST_HOLD = 500;

/** Locks of one step: plain locks of one location, or one lock of any kind. */
type Step = readonly StoreLock[];

/** The plan of one attempt at the members. */
export interface Round {
  /** The attempt waits for the first step while it holds nothing. */
  readonly steps: readonly Step[];
  /** ms for which the attempt may wait for further steps while it holds earlier ones. */
  readonly hold: number;
  /** The busy lock of the last round, which the attempt waits for first if the first step has several locks. */
  readonly first?: string | undefined;
}

/** The reason of a failed round. */
export interface Refusal {
  readonly step: Step;
  readonly answer: Busy | Error;
  /** Wait until the first grant, ms. */
  readonly waited: number;
}

export const isPlain = ({ kind }: StoreLock): boolean => kind === 'lock';

/** Equal for locks that one command can take. */
const groupKeyOf = (lock: StoreLock): string =>
  isPlain(lock) ? `${lock.client.id} at ${lock.client.store.locationOf(lock.name)}` : lock.identity;

/** Divides the members into the fewest possible steps. */
export function stepsOf(members: readonly StoreLock[]): readonly Step[] {
  const client = members[0]?.client;
  const steps = new Map<string, StoreLock[]>();
  for (const member of members) {
    // Mostly all are plain locks of one client, whose locations are few and short texts.
    const isUsual = isPlain(member) && member.client === client;
    const key = isUsual ? client.store.locationOf(member.name) : groupKeyOf(member);
    const step = steps.get(key);
    if (step === undefined) steps.set(key, [member]);
    else step.push(member);
  }
  return [...steps.values()];
}

/**
 * Decides the order in which a multi-lock requests its members, and whether it holds some while it waits for others.
 *
 * Rounds without holding come first. The caller waits for the busy member in that member's queue, and requests the
 * others when it is granted. If another member is busy then, the caller releases everything and waits for that member
 * next. So a multi-lock behind one long hold keeps no other name busy. But two locks with steady queues are never free
 * at that moment: in a measurement, each alone was granted in 32 ms, both together never.
 *
 * After MOST_REFUSALS such rounds, the caller takes the members in order, and waits for each while it holds the earlier
 * ones. All processes use the order by name, so multi-locks cannot deadlock with each other: each holds only members
 * before the one that it waits for. Two other callers can close a cycle: one that holds a single lock by hand and
 * requests another out of order, and one that uses one name on two services. So a round in order ends `hold` ms after
 * its first grant, and releases all its members. `hold` is the longest wait for a member so far, times the number of
 * members, and doubles with each round, so that it suffices in the end for queues of any length. The next round waits
 * first for the member that was busy, while it holds nothing: a member that stays busy costs the other callers `hold`,
 * and not the whole wait.
 */
export class Rounds {
  private round: Round;
  /** Refusals of rounds without holding in a row. */
  private refusals = 0;
  private longestWait = 0;
  /** The number of rounds in order that ended without success. */
  private givenUp = 0;

  /**
   * @param members in the order of all processes
   * @param steps the members in the fewest possible steps
   * @param mostHold ms; a longer `hold` would use up the lease
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
      // A round that has held in vain shortens the next series of rounds without holding.
      this.refusals = hold > 0 ? MOST_REFUSALS / 2 : this.refusals + 1;
      if (hold > 0) this.givenUp++;
      else this.longestWait = Math.max(this.longestWait, waited);
    }
    if (this.refusals >= MOST_REFUSALS) {
      this.round = { steps: this.members.map((member) => [member]), hold: this.holdTime() };
    } else {
      // The two sides of a read-write lock stay together and in order, because a reader cannot become the writer.
      const isFirst = ([lock]: Step) => Number(lock?.location === by[0]?.location);
      const first = answer instanceof Error ? undefined : answer.name;
      this.round = { steps: steps.toSorted((a, b) => isFirst(b) - isFirst(a)), hold: 0, first };
    }
    return this.round;
  }

  private holdTime(): number {
    const forEach = Math.max(this.longestWait, SHORTEST_HOLD_EACH);
    const first = Math.min(Math.max(forEach * this.members.length, SHORTEST_HOLD), LONGEST_FIRST_HOLD);
    // The random part keeps two colliding multi-locks from giving up at the same moment.
    const spread = 0.75 + random() / 2;
    return Math.min(first * 2 ** this.givenUp * spread, this.mostHold);
  }
}
