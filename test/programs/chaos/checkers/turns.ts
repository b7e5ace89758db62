import { type Attempt, deadlineOf, endOf, holdsOf } from '../history.js';

type Hold = ReturnType<typeof holdsOf>[number];

/** A grant, and the time in which what was granted has come to the queue. */
export interface Turn {
  readonly hold: Hold;
  /** It stood in the queue from then on, if nothing was wrong. */
  readonly stoodFrom: number;
  /** It did not stand there before. */
  readonly cameAfter: number;
  /** Others may have been passed: it took what had been handed over, and not what a holder had left behind. */
  readonly mayPass: boolean;
  /** Others must not have passed it: its caller waited in the queue. */
  readonly mayBePassed: boolean;
}

/** Turns of callers, each of whom stands in the queue on its own. */
export const turnsOfCallers = (all: readonly Attempt[]): Turn[] =>
  holdsOf(all)
    .filter(({ call, outer }) => call === 'acquire' && outer === undefined)
    .map((hold) => ({
      hold,
      stoodFrom: hold.invoked,
      cameAfter: hold.invoked,
      mayPass: true,
      mayBePassed: true,
    }));

/** A grant that comes so much later than the release may follow the end of a short claim or lease, ms. */
const HANDED_OVER = 250;

/**
 * Turns of processes at a plain lock: one place stands for all callers of a process, and what it is granted goes from one
 * caller to the next. A process comes with the first of the callers that wait without a break, but not before it has
 * released what it held before.
 */
export function turnsOfProcesses(all: readonly Attempt[]): Turn[] {
  const holds = holdsOf(all)
    .filter(({ call }) => call !== 'nested')
    .sort((a, b) => a.token - b.token);
  const calls = all.filter(({ call }) => call !== 'nested').sort((a, b) => b.invoked - a.invoked);
  const latest = new Map<string, Hold>();
  const turns: Turn[] = [];
  let before: Hold | undefined;
  for (const hold of holds) {
    const own = latest.get(hold.process);
    if (own?.owner !== hold.owner) {
      turns.push({
        hold,
        stoodFrom: Math.max(hold.invoked, own === undefined ? -Infinity : (own.releaseTo ?? Infinity)),
        cameAfter: Math.max(firstInARow(hold, calls), own === undefined ? -Infinity : endOf(own)),
        mayPass: before !== undefined && isHandedOver(before, hold),
        mayBePassed: hold.call === 'acquire',
      });
    }
    latest.set(hold.process, hold);
    before = hold;
  }
  return turns;
}

/**
 * Since when some caller of the process has been waiting at every moment until the grant.
 * @param calls the latest first
 */
function firstInARow({ process, invoked }: Hold, calls: readonly Attempt[]): number {
  let first = invoked;
  for (const call of calls) {
    const waited = call.process === process && call.invoked < first;
    if (waited && (call.answered ?? Infinity) >= first) first = call.invoked;
  }
  return first;
}

/** The holder has released it while it was its own, and so handed it over. */
const isHandedOver = (before: Hold, next: Hold): boolean =>
  before.releaseFrom !== undefined &&
  before.releaseTo !== undefined &&
  before.lost === undefined &&
  before.releaseTo <= deadlineOf(before) &&
  next.granted - before.releaseFrom < HANDED_OVER;
