import type { History, PromiseNote, Violation } from '../history.js';

/** What two clocks of a process and of the server may differ by in a period, ms. */
const DRIFT = 20;

/**
 * (i) What is built on the lock: at most one process is told that it leads, and terms only grow; a ticket is resumed at most
 * once, and what goes on has a greater token; work succeeds at most once in a period. For runs in which the store forgets
 * nothing.
 */
export function promises({ notes, drained }: History): Violation[] {
  if (notes === undefined) return [];
  const missing = (['told', 'resumed', 'success'] as const).filter(
    (type) => !notes.some((note) => note.type === type),
  );
  return [
    ...missing.map((type) => ({ checker: 'promises', at: drained, message: `no process noted "${type}"` })),
    ...inTurn('election', notes),
    ...inTurn('lease', notes),
    ...resumedTwice(notes),
    ...tooSoon(notes),
  ];
}

/**
 * The holder of a smaller number is told nothing any more when the holder of a greater one has been told that it holds. The
 * answer was given after `before`, and before `at`.
 */
function inTurn(promise: string, notes: readonly PromiseNote[]): Violation[] {
  const told = notes.flatMap((note) => (note.type === 'told' && note.promise === promise ? [note] : []));
  const byEnd = told.toSorted((a, b) => a.at - b.at);
  const found: Violation[] = [];
  let greatest: (typeof told)[number] | undefined;
  let next = 0;
  for (const note of told.toSorted((a, b) => a.before - b.before)) {
    for (let other = byEnd[next]; other !== undefined && other.at < note.before; other = byEnd[++next]) {
      if (other.number > (greatest?.number ?? 0)) greatest = other;
    }
    const isLate = greatest !== undefined && note.number < greatest.number;
    const isDouble = note.number === greatest?.number && note.process !== greatest.process;
    if (!isLate && !isDouble) continue;
    const others = `${greatest?.process ?? ''} had been told with ${String(greatest?.number)}`;
    const message = `${promise}: ${note.process} was told that it holds ${String(note.number)} after ${others}`;
    found.push({ checker: 'promises', at: note.before, message });
  }
  return found;
}

function resumedTwice(notes: readonly PromiseNote[]): Violation[] {
  const first = new Map<string, string>();
  return notes.flatMap((note) => {
    if (note.type !== 'resumed') return [];
    const other = first.get(note.ticket);
    first.set(note.ticket, note.process);
    if (other === undefined) return [];
    const message = `ticket ${note.ticket} was resumed by ${other} and by ${note.process}`;
    return [{ checker: 'promises', at: note.at, message }];
  });
}

/** The note of a success is made after the work has ended. From then on no work that succeeds begins for the period. */
function tooSoon(notes: readonly PromiseNote[]): Violation[] {
  const successes = notes
    .flatMap((note) => (note.type === 'success' ? [note] : []))
    .sort((a, b) => a.worked - b.worked);
  return successes.slice(1).flatMap((note, index) => {
    const before = successes[index];
    if (before === undefined || note.begun >= before.worked + before.period - DRIFT) return [];
    const apart = (note.begun - before.worked).toFixed(0);
    const message = `once: ${note.process} began ${apart} ms after the success of ${before.process}`;
    return [{ checker: 'promises', at: note.begun, message }];
  });
}
