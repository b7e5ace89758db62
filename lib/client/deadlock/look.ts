import type { DeadlockStep } from '../../api/deadlock.js';
import { blockersOf, type Wanted } from './blockers.js';
import { type NestedWait, nestedWaits } from './nested-wait.js';
import type { Reading } from './reading.js';
import { type Deadlock, findDeadlock, type GraphWait } from './wait-graph.js';

/** Limits of one look: steps from a wait to the next, and waits in all. */
const MOST_STEPS = 16;
const MOST_WAITS = 256;

/** A snapshot of a wait of this or another process. */
export interface SeenWait extends GraphWait, Wanted {
  readonly name: string;
  readonly label: string;
  readonly process: string;
  readonly breaks: boolean;
  /** Set for a wait of this process. */
  readonly local: NestedWait | undefined;
  /** The note of another process that reports the wait. */
  readonly note: { readonly client: string; readonly stamp: number } | undefined;
}

/** The public description of one member. */
export const stepOf = ({ name, label, process }: SeenWait): DeadlockStep => ({ name, label, process });

/** A wait whose blockers have not been read. */
export type UnblockedWait = Omit<SeenWait, 'blockers'>;

/** The deadlock that includes a wait of this process. Follows the holders of its lock to their own waits. */
export async function lookFrom(start: NestedWait, reading: Reading): Promise<Deadlock<SeenWait> | undefined> {
  const seen = await follow([ofThisProcess(start)], reading);
  const first = seen.find(({ id }) => id === start.id);
  return first && deadlockOf(first, seen);
}

/** These waits and all waits that they depend on, each with its blockers. */
export async function follow(
  starts: readonly UnblockedWait[],
  reading: Reading,
): Promise<readonly SeenWait[]> {
  const seen = new Map<string, SeenWait>();
  let wave = starts.slice(0, MOST_WAITS);
  for (let step = 0; step < MOST_STEPS && wave.length > 0; step++) {
    const found = new Map<string, UnblockedWait>();
    for (const wait of wave) {
      const blockers = blockersOf(await reading.inspect(wait), wait);
      seen.set(wait.id, { ...wait, blockers });
      for (const owner of blockers.owners)
        for (const next of await waitsUnder(owner, reading)) found.set(next.id, next);
    }
    wave = [...found.values()].filter(({ id }) => !seen.has(id)).slice(0, MOST_WAITS - seen.size);
  }
  return [...seen.values()];
}

/** The deadlock among these waits that includes `start`. */
export function deadlockOf(start: SeenWait, seen: readonly SeenWait[]): Deadlock<SeenWait> | undefined {
  const deadlock = findDeadlock(seen, start);
  return deadlock?.evidence.every(isUnchanged) === true ? deadlock : undefined;
}

/** The waits of the work that runs under a hold. */
export async function waitsUnder(owner: string, reading: Reading): Promise<readonly UnblockedWait[]> {
  const local = reading.under(owner);
  if (local.length > 0) return local.map(ofThisProcess);
  const client = owner.slice(0, owner.lastIndexOf(':'));
  const note = await reading.noteOf(client);
  if (note === undefined) return [];
  const { process, stamp } = note;
  return note.under(owner).map((wait) => ({ ...wait, process, local: undefined, note: { client, stamp } }));
}

/** A copy, because the holds of a wait may change. */
function ofThisProcess(wait: NestedWait): UnblockedWait {
  const { id, since, name, label, process, mode, permits, holds, breaks } = wait;
  return { id, since, name, label, process, mode, permits, holds, breaks, local: wait, note: undefined };
}

/**
 * Whether a wait of this process continues and has all the holds of the snapshot. Waits of other processes: see {@link
 * Confirmation}.
 */
export function isUnchanged({ local, holds }: SeenWait): boolean {
  if (local === undefined) return true;
  return nestedWaits.has(local) && holds.every((owner) => local.holds.includes(owner));
}
