import { type Attempt, endOf, type History, type Violation } from '../history.js';

/** A deadlock that lasts for longer must have been told of, ms: the page says two seconds, on a machine that is not busy. */
const PATIENCE = 3_000;

/** When two things went on at the same time. */
interface Span {
  readonly from: number;
  readonly to: number;
}

/** A caller that asked for a lock under another one. */
interface Nested extends Span {
  readonly process: string;
  readonly wanted: Attempt;
  readonly outer: Attempt;
}

const both = (a: Span, b: Span): Span => ({ from: Math.max(a.from, b.from), to: Math.min(a.to, b.to) });
const lasts = ({ from, to }: Span): number => to - from;

/**
 * (i) Each deadlock that was told of has been one: at one moment each of its callers waited for the next lock and held the one
 * before. And none that lasted was not told of.
 */
export function deadlocks(history: History): Violation[] {
  const waits = nestedOf(history);
  return [...invented(history, waits), ...untold(history, waits)];
}

/** While its caller waited and held. What a killed process did ends with its life. */
function nestedOf({ attempts, processes }: History): Nested[] {
  const known = new Map(attempts.map((attempt) => [`${attempt.process} ${String(attempt.op)}`, attempt]));
  return attempts.flatMap((wanted) => {
    const outer = known.get(`${wanted.process} ${String(wanted.under)}`);
    if (outer?.granted === undefined) return [];
    const seen = processes.get(wanted.process)?.lastSeen ?? Infinity;
    const waited = { from: wanted.invoked, to: Math.min(wanted.answered ?? seen, seen) };
    const held = { from: outer.granted, to: Math.min(outer.releaseFrom ?? seen, seen) };
    return [{ process: wanted.process, wanted, outer, ...both(waited, held) }];
  });
}

function invented({ deadlocks }: History, waits: readonly Nested[]): Violation[] {
  return (deadlocks ?? []).flatMap(({ process, at, cycle }) => {
    const moment = (step: number, span: Span): boolean => {
      if (lasts(span) < 0) return false;
      const told = cycle[step];
      if (told === undefined) return true;
      const before = cycle[(step + cycle.length - 1) % cycle.length]!.name;
      return waits.some(
        (wait) =>
          wait.process === told.process &&
          wait.wanted.lock === told.name &&
          wait.outer.lock === before &&
          moment(step + 1, both(span, wait)),
      );
    };
    if (moment(0, { from: -Infinity, to: at })) return [];
    const steps = cycle.map((step) => `${step.process} for ${step.name}`).join(', ');
    return [{ checker: 'deadlocks', at, message: `${process} tells of a deadlock that was none: ${steps}` }];
  });
}

/** Of locks with one holder: there a circle of waits is a deadlock, whatever else is held. */
function untold(history: History, waits: readonly Nested[]): Violation[] {
  const exclusive = waits.filter(
    ({ wanted, outer }) => wanted.mode === 'exclusive' && outer.mode === 'exclusive',
  );
  const found = new Map<string, Violation>();
  const follow = (chain: readonly Nested[], span: Span): void => {
    if (lasts(span) < PATIENCE || chain.length > 6) return;
    const [first, last] = [chain[0]!, chain.at(-1)!];
    for (const next of exclusive) {
      if (next.outer.lock !== last.wanted.lock || !isHolder(next.outer, span)) continue;
      const shared = both(span, next);
      if (next === first && lasts(span) >= PATIENCE) report(history, chain, span, found);
      else if (!chain.includes(next)) follow([...chain, next], shared);
    }
  };
  for (const wait of exclusive) follow([wait], wait);
  return [...found.values()];
}

const isHolder = (outer: Attempt, { to }: Span): boolean => endOf(outer) >= to;

function report(
  { faults, processes, deadlocks = [] }: History,
  chain: readonly Nested[],
  span: Span,
  found: Map<string, Violation>,
): void {
  const names = new Set(chain.map(({ process }) => process));
  const excused =
    faults.some(
      ({ from, to, process }) =>
        from < span.to && to > span.from && (process === undefined || names.has(process)),
    ) ||
    [...names].some((name) =>
      processes.get(name)?.lags.some((lag) => lag.from < span.to && lag.to > span.from),
    );
  const told = deadlocks.some(
    ({ at, cycle }) =>
      at >= span.from && cycle.some(({ name }) => chain.some(({ wanted }) => wanted.lock === name)),
  );
  if (excused || told) return;
  const steps = chain.map(({ process, wanted }) => `${process} for ${wanted.lock}`).sort();
  const message = `nothing told of a deadlock of ${lasts(span).toFixed(0)} ms: ${steps.join(', ')}`;
  found.set(steps.join(), { checker: 'deadlocks', at: span.from, message });
}
