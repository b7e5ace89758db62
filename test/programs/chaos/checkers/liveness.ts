import { type Attempt, byLock, endOf, type History, holdsOf, lagWithin, type Violation } from '../history.js';
import { mayStay } from '../../../support/keys.js';

export interface LivenessBounds {
  /** ms that a lock may be free after the last fault while somebody waits: lease, failover, claim. */
  readonly recovery: number;
  /** ms for each place in a queue whose process was killed. */
  readonly perDead: number;
  /** The same where nothing has gone wrong at all. */
  readonly prompt: number;
}

/**
 * (e) After the last fault nobody waits for a lock that nobody holds, longer than a forgotten hold lasts in the store;
 * without faults not longer than a hand-over takes. And when all have gone, nothing is left of them.
 */
export function liveness(history: History, bounds: LivenessBounds): Violation[] {
  return [...stalls(history, bounds), ...leftovers(history)];
}

function stalls(
  { attempts, processes, server, faults, healed, drained }: History,
  { recovery, prompt, perDead }: LivenessBounds,
): Violation[] {
  const calm = faults.every(({ severity }) => severity === 'harmless');
  const since = calm ? -Infinity : healed;
  const found: Violation[] = [];
  for (const [lock, all] of byLock(attempts)) {
    const waits = all.filter(({ call }) => call === 'acquire');
    const waitEnd = ({ answered, process }: Attempt) =>
      answered ?? processes.get(process)?.lastSeen ?? drained;
    for (const { from, to } of freeWhileWaitedFor(all, waits, waitEnd, since, drained)) {
      const lag = Math.max(
        0,
        ...[...processes.values()].map((process) => lagWithin(process, from - 100, to)),
      );
      // Who was not answered asks again after about as long a time.
      const silence = 2 * lagWithin(server, from - 100, to);
      const dead = placesOf(
        waits.filter(
          ({ answered, process, invoked }) =>
            answered === undefined && invoked < to && (processes.get(process)?.lastSeen ?? to) < healed,
        ),
      );
      // A server that is silent for so long has made a fault that nobody planned, such as a disk that stalls.
      const disturbed = server.lags.some(
        (silent) => silent.to - silent.from > prompt && silent.from < to && silent.to > from - recovery,
      );
      const bound = (calm && !disturbed ? prompt : recovery) + lag + silence + dead * perDead;
      if (to - from > bound)
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
    ...keys.filter(({ ttl }) => ttl < 0).map(({ key }) => say(`${key} was left without an end`)),
    ...keys.filter(({ key }) => !mayStay(key)).map(({ key }) => say(`${key} was left`)),
    ...channels.map((channel) => say(`somebody still listens to ${channel}`)),
    ...(clients > 0 ? [say(`${String(clients)} connections were left`)] : []),
    ...hanging.map((name) => say(`${name} did not end by itself`)),
  ];
}
