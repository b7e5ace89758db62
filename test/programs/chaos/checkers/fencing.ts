import {
  type Attempt,
  byLock,
  deadlineOf,
  endOf,
  type History,
  holdsOf,
  type Violation,
} from '../history.js';
import type { Update } from '../resource.js';
import { Losses } from './losses.js';

/** (c) Fencing tokens grow in the order of the grants, and a resource that checks them loses no update. */
export function fencing(history: History): Violation[] {
  const losses = new Losses(history);
  const found: Violation[] = [];
  for (const [lock, attempts] of byLock(history.attempts)) {
    // Whoever goes on with what the store has forgotten is not in the store's order.
    const holds = holdsOf(attempts).filter(
      (hold) => hold.outer === undefined && losses.of(hold) === undefined,
    );
    const inOrder = (before: (hold: Attempt) => number, after: (hold: Attempt) => number) => {
      for (const [earlier, later] of backwards(holds, before, after)) {
        const message = `${lock}: token ${String(later.token)} of ${later.process}#${String(later.op)} came after ${String(earlier.token)} of ${earlier.process}#${String(earlier.op)}`;
        found.push({ checker: 'fencing', at: later.granted, message });
      }
    };
    // Who asks when another has it already gets a greater token, whatever the kind.
    inOrder(
      ({ granted }) => granted!,
      ({ invoked }) => invoked,
    );
    // Who was stopped between its grant and its first look at the lease learns of both together, perhaps long after.
    const begun = (hold: Attempt) => (deadlineOf(hold) > hold.granted! ? hold.granted! : -Infinity);
    if (holds.every(({ mode }) => mode === 'exclusive'))
      inOrder((hold) => Math.max(endOf(hold), hold.granted!), begun);
    found.push(...repeated(lock, holds));
  }
  return [...found, ...lostUpdates(history.updates)];
}

/** The pairs of which one was over before the other began, and the tokens say otherwise. */
function* backwards<T extends Attempt & { token: number }>(
  holds: readonly T[],
  before: (hold: T) => number,
  after: (hold: T) => number,
): Generator<[T, T]> {
  const ended = holds.toSorted((a, b) => before(a) - before(b));
  let next = 0;
  let greatest: T | undefined;
  for (const hold of holds.toSorted((a, b) => after(a) - after(b))) {
    for (; next < ended.length && before(ended[next]!) < after(hold); next++) {
      if (greatest === undefined || ended[next]!.token > greatest.token) greatest = ended[next]!;
    }
    if (greatest !== undefined && greatest !== hold && greatest.token > hold.token) yield [greatest, hold];
  }
}

function repeated(
  lock: string,
  holds: readonly (Attempt & { token: number; granted: number })[],
): Violation[] {
  const seen = new Set<number>();
  return holds
    .filter(({ token }) => seen.size === seen.add(token).size)
    .map(({ token, granted }) => ({
      checker: 'fencing',
      at: granted,
      message: `${lock}: token ${String(token)} was given out twice`,
    }));
}

/** Every update starts from the one before, and none comes from an older holder. */
function lostUpdates(updates: readonly Update[]): Violation[] {
  const last = new Map<string, Update>();
  const found: Violation[] = [];
  for (const update of updates) {
    const before = last.get(update.lock);
    if (update.from !== (before?.to ?? 0) || update.token < (before?.token ?? 0)) {
      const message = `${update.lock}: an update to ${String(before?.to ?? 0)} was lost`;
      found.push({ checker: 'fencing', at: 0, message });
    }
    last.set(update.lock, update);
  }
  return found;
}
