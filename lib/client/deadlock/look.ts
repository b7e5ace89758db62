import type { DeadlockStep } from '../../api/deadlock.js';
import { blockersOf, type Wanted } from './blockers.js';
import { type NestedWait, nestedWaits } from './nested-wait.js';
import type { Reading } from './reading.js';
import { type Deadlock, findDeadlock, type GraphWait } from './wait-graph.js';

/** How many waits are followed from one to the next, and how many in all. */
const MOST_STEPS = 16;
const MOST_WAITS = 256;

/** A wait of this process or of another one, as it was when it was looked at. */
export interface SeenWait extends GraphWait, Wanted {
  readonly name: string;
  readonly label: string;
  readonly process: string;
  readonly breaks: boolean;
  /** A wait of this process. */
  readonly local: NestedWait | undefined;
  /** The note of another process that tells of it. */
  readonly note: { readonly client: string; readonly stamp: number } | undefined;
}

/** What is told of a member of a deadlock. */
export const stepOf = ({ name, label, process }: SeenWait): DeadlockStep => ({ name, label, process });

/** A wait before it is known what it waits for. */
export type UnblockedWait = Omit<SeenWait, 'blockers'>;

/** The deadlock that a wait of this process is a member of: follows the holders of its lock to what they wait for. */
export async function lookFrom(start: NestedWait, reading: Reading): Promise<Deadlock<SeenWait> | undefined> {
  const seen = await follow([ofThisProcess(start)], reading);
  const first = seen.find(({ id }) => id === start.id);
  return first && deadlockOf(first, seen);
}

/** These waits and those that they depend on, each with what is in its way. */
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

/** The deadlock among these waits that one of them is a member of. */
export function deadlockOf(start: SeenWait, seen: readonly SeenWait[]): Deadlock<SeenWait> | undefined {
  const deadlock = findDeadlock(seen, start);
  return deadlock?.evidence.every(isUnchanged) === true ? deadlock : undefined;
}

/** The waits of the work under a hold. */
export async function waitsUnder(owner: string, reading: Reading): Promise<readonly UnblockedWait[]> {
  const local = reading.under(owner);
  if (local.length > 0) return local.map(ofThisProcess);
  const client = owner.slice(0, owner.lastIndexOf(':'));
  const note = await reading.noteOf(client);
  if (note === undefined) return [];
  const { process, stamp } = note;
  return note.under(owner).map((wait) => ({ ...wait, process, local: undefined, note: { client, stamp } }));
}

/** Without what may change: the holds are those of this moment. */
function ofThisProcess(wait: NestedWait): UnblockedWait {
  const { id, since, name, label, process, mode, permits, holds, breaks } = wait;
  return { id, since, name, label, process, mode, permits, holds, breaks, local: wait, note: undefined };
}

/** Whether a wait of this process still goes on and holds what it held. Those of others are looked at again. */
export function isUnchanged({ local, holds }: SeenWait): boolean {
  if (local === undefined) return true;
  return nestedWaits.has(local) && holds.every((owner) => local.holds.includes(owner));
}
