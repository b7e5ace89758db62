import { endOf, type History, holdsOf, type Violation } from '../../chaos/history.js';

/** One call for several locks at once: the attempts of one call that began together. */
interface Several {
  readonly process: string;
  readonly locks: readonly string[];
  readonly from: number;
  readonly to: number;
}

interface Bounds {
  readonly recovery: number;
  readonly prompt: number;
}

/** ms that a call may take to see that all are free, where nothing goes wrong. */
const PROMPT = 300;

/** ms after which a call beside steady queues has had its turn, where nothing goes wrong. */
const TURN = 6_000;

/**
 * No call for several locks waits while all of them are free, longer than a forgotten hold lasts in the store. Of the
 * checkers of single locks none sees such a wait: it may be for the other one.
 */
export function severals(history: History, { recovery, prompt }: Bounds): Violation[] {
  const calm = history.faults.every(({ severity }) => severity === 'harmless');
  const since = calm ? -Infinity : history.healed;
  const bound = calm ? Math.min(prompt, PROMPT) : recovery;
  const ends = (
    history.attempts as readonly ((typeof history.attempts)[number] & { several?: number })[]
  ).filter(({ several }) => several !== undefined);
  const calls = new Map<string, Several & { locks: string[] }>();
  for (const attempt of ends) {
    const { process, several, lock, invoked, answered } = attempt;
    const key = `${process} ${String(several)}`;
    const seen = history.processes.get(process)?.lastSeen ?? Infinity;
    const call = calls.get(key) ?? {
      process,
      locks: [],
      from: Math.max(invoked, since),
      to: Math.min(answered ?? Infinity, seen, history.drained),
    };
    call.locks.push(lock);
    calls.set(key, call);
  }
  const holds = holdsOf(history.attempts);
  return [...calls.values()].flatMap(({ process, locks, from, to }) => {
    const busy = holds
      .filter(({ lock }) => locks.includes(lock))
      .map((hold) => ({ from: hold.granted, to: hold.releaseTo ?? endOf(hold) }));
    let free = from;
    if (calm && to - from > TURN && busy.length > 0) {
      const message = `${process} did not get ${locks.join(' and ')} for ${(to - from).toFixed(0)} ms`;
      return [{ checker: 'liveness', at: from, message }];
    }
    for (const span of [...busy.filter((one) => one.to > from && one.from < to), { from: to, to }]) {
      if (span.from - free > bound) {
        const message = `${process} waited for ${locks.join(' and ')} for ${(span.from - free).toFixed(0)} ms in which all were free`;
        return [{ checker: 'liveness', at: free, message }];
      }
      free = Math.max(free, span.to);
    }
    return [];
  });
}
