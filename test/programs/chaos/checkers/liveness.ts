import { type Attempt, byLock, endOf, type History, holdsOf, type Violation } from '../history.js';
import { mayStay, staysForever } from '../../../support/keys.js';
import { type Bounds, Delays } from './delays.js';
import { isOfSeveral } from './severals.js';

export interface LivenessBounds extends Bounds {
  /** ms for each place in a queue whose process was killed. */
  readonly perDead: number;
}

/**
 * (e) After the last fault nobody waits for a lock that nobody holds, longer than a forgotten hold lasts in the store;
 * without faults not longer than a hand-over takes. And when all have gone, nothing is left of them.
 */
export function liveness(history: History, bounds: LivenessBounds): Violation[] {
  return [...stalls(history, bounds), ...leftovers(history)];
}

function stalls(history: History, { recovery, prompt, perDead }: LivenessBounds): Violation[] {
  const { attempts, processes, healed, drained } = history;
  const delays = new Delays(history);
  const since = delays.calm ? -Infinity : healed;
  // A call for several locks may keep one of them while it waits for another, without a hold that could be seen here.
  const bounds = { recovery, prompt: attempts.some(isOfSeveral) ? recovery : prompt };
  const found: Violation[] = [];
  for (const [lock, all] of byLock(attempts)) {
    const waits = all.filter(({ call }) => call === 'acquire');
    const waitEnd = ({ answered, process }: Attempt) =>
      answered ?? processes.get(process)?.lastSeen ?? drained;
    for (const { from, to } of freeWhileWaitedFor(all, waits, waitEnd, since, drained)) {
      const dead = placesOf(
        waits.filter(
          ({ answered, process, invoked }) =>
            answered === undefined && invoked < to && (processes.get(process)?.lastSeen ?? to) < healed,
        ),
      );
      if (to - from > delays.bound(bounds, from, to) + dead * perDead)
        found.push({
          checker: 'liveness',
          at: from,
          message: `${lock}: was free for ${(to - from).toFixed(0)} ms while somebody waited`,
        });
    }
  }
  return found;
}

/** How many places they have in the queue: one each, or one for all of a process that wait for a plain lock. */
const placesOf = (waits: readonly Attempt[]): number =>
  new Set(waits.map(({ kind, process, op }) => (kind === 'lock' ? process : `${process}#${String(op)}`)))
    .size;

/** The times in which nobody held the lock and somebody waited for it. */
function* freeWhileWaitedFor(
  all: readonly Attempt[],
  waits: readonly Attempt[],
  waitEnd: (attempt: Attempt) => number,
  since: number,
  end: number,
): Generator<{ from: number; to: number }> {
  const holds = holdsOf(all).filter(({ call }) => call !== 'nested');
  let free = since;
  const events = [...holds, undefined];
  for (const hold of events) {
    const to = hold?.granted ?? end;
    // The longest that somebody waited in vain: until the gap was over, or gave up, or was killed at the end.
    let longest = { from: to, to };
    for (const wait of waits) {
      const gap = { from: Math.max(free, wait.invoked, since), to: Math.min(to, waitEnd(wait)) };
      if (gap.to - gap.from > longest.to - longest.from) longest = gap;
    }
    if (longest.to > longest.from) yield longest;
    if (hold !== undefined) free = Math.max(free, hold.releaseTo ?? endOf(hold), endOf(hold));
  }
}

function leftovers({ residue, processes, drained }: History): Violation[] {
  const say = (message: string) => ({ checker: 'liveness', at: drained, message });
  const errors = [...processes.values()].flatMap(({ name, errors }) =>
    errors.map((error) => say(`${name}: ${error}`)),
  );
  if (residue === undefined) return errors;
  const { keys, channels, clients, hanging } = residue;
  return [
    ...errors,
    ...keys
      .filter(({ key, ttl }) => ttl < 0 && !staysForever(key))
      .map(({ key }) => say(`${key} was left without an end`)),
    ...keys.filter(({ key }) => !mayStay(key)).map(({ key }) => say(`${key} was left`)),
    ...channels.map((channel) => say(`somebody still listens to ${channel}`)),
    ...(clients > 0 ? [say(`${String(clients)} connections were left`)] : []),
    ...hanging.map((name) => say(`${name} did not end by itself`)),
  ];
}
