import { type Attempt, endOf, type History, holdsOf, lagWithin, type Violation } from '../history.js';
import { Delays } from './delays.js';
import type { LivenessBounds } from './liveness.js';

/** One call for several locks at once: the attempts of one call that began together. */
interface Several {
  readonly process: string;
  readonly locks: string[];
  readonly from: number;
  readonly to: number;
}

/**
 * ms after which a call beside steady queues has had its turn, where nothing goes wrong. Without queues chance decides, and
 * such a call may have to hold one lock for longer and longer.
 */
const TURN = { queues: 6_000, none: 12_000 };

/**
 * No call for several locks waits while all of them are free, longer than a forgotten hold lasts in the store. Of the
 * checkers of single locks none sees such a wait: it may be for the other one.
 */
export function severals(history: History, bounds: LivenessBounds): Violation[] {
  const delays = new Delays(history);
  const calls = callsOf(history, delays.calm ? -Infinity : history.healed);
  if (calls.length === 0) return [];
  const holds = holdsOf(history.attempts);
  const turn = history.queues ? TURN.queues : TURN.none;
  const dead = [...history.processes.values()].filter(({ ended }) => !ended).length * bounds.perDead;
  return calls.flatMap(({ process, locks, from, to }) => {
    const all = locks.join(' and ');
    const say = (at: number, message: string) => [
      { checker: 'liveness', at, message: `${process} ${message}` },
    ];
    const busy = holds
      .filter(({ lock }) => locks.includes(lock))
      .map((hold) => ({ from: hold.granted, to: hold.releaseTo ?? endOf(hold) }));
    // Each process that stood still may have held what was waited for.
    const stood = delays
      .lagsOf(from, to)
      .reduce((sum, lag) => sum + lag, lagWithin(history.server, from, to));
    if (delays.calm && to - from > turn + stood && busy.length > 0)
      return say(from, `did not get ${all} for ${(to - from).toFixed(0)} ms`);
    let free = from;
    for (const span of [...busy.filter((one) => one.to > from && one.from < to), { from: to, to }]) {
      if (span.from - free > delays.bound(bounds, free, span.from) + dead) {
        const waited = (span.from - free).toFixed(0);
        return say(free, `waited for ${all} for ${waited} ms in which all were free`);
      }
      free = Math.max(free, span.to);
    }
    return [];
  });
}

function callsOf({ attempts, processes, drained }: History, since: number): Several[] {
  const calls = new Map<string, Several>();
  for (const { process, several, lock, invoked, answered } of attempts.filter(isOfSeveral)) {
    const key = `${process} ${String(several)}`;
    const seen = processes.get(process)?.lastSeen ?? Infinity;
    const call = calls.get(key) ?? {
      process,
      locks: [],
      from: Math.max(invoked, since),
      to: Math.min(answered ?? Infinity, seen, drained),
    };
    call.locks.push(lock);
    calls.set(key, call);
  }
  return [...calls.values()];
}

export const isOfSeveral = ({ several }: Pick<Attempt, 'several'>): boolean => several !== undefined;
