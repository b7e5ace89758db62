import type { StoredLock } from '../../port/lock-store.js';
import { blockersOf, type Wanted } from './blockers.js';
import { type NestedWait, nestedWaits } from './nested-wait.js';
import { type Deadlock, findDeadlock, type GraphWait } from './wait-graph.js';
import type { WaitNote } from './wait-notes.js';

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

/** Where a look reads what other processes know. */
export interface WaitSources {
  inspect(name: string): Promise<StoredLock | null>;
  /** What the process of a client has written of its waits. */
  noteOf(client: string): Promise<WaitNote | undefined>;
}

type Unblocked = Omit<SeenWait, 'blockers'>;

/**
 * The deadlock that a wait of this process is a member of: follows the holders of its lock to what they wait for.
 * @param sources undefined: only the waits of this process are followed
 */
export async function lookFrom(
  start: NestedWait,
  sources: WaitSources | undefined,
): Promise<Deadlock<SeenWait> | undefined> {
  const seen = new Map<string, SeenWait>();
  let wave: readonly Unblocked[] = [ofThisProcess(start)];
  for (let step = 0; step < MOST_STEPS && wave.length > 0; step++) {
    const found = new Map<string, Unblocked>();
    for (const wait of wave) {
      const stored = await (wait.local?.inspect() ?? sources?.inspect(wait.name));
      const blockers = blockersOf(stored ?? null, wait);
      seen.set(wait.id, { ...wait, blockers });
      for (const owner of blockers.owners)
        for (const next of await waitsUnder(owner, sources)) found.set(next.id, next);
    }
    wave = [...found.values()].filter(({ id }) => !seen.has(id)).slice(0, MOST_WAITS - seen.size);
  }
  const first = seen.get(start.id);
  const deadlock = first && findDeadlock([...seen.values()], first);
  return deadlock?.evidence.every(isUnchanged) === true ? deadlock : undefined;
}

/** The waits of the work under a hold. */
async function waitsUnder(owner: string, sources: WaitSources | undefined): Promise<readonly Unblocked[]> {
  const local = [...nestedWaits].filter(({ holds }) => holds.includes(owner));
  if (local.length > 0 || sources === undefined) return local.map(ofThisProcess);
  const client = owner.slice(0, owner.lastIndexOf(':'));
  const note = await sources.noteOf(client);
  if (note === undefined) return [];
  const { process, stamp, waits } = note;
  return waits
    .filter(({ holds }) => holds.includes(owner))
    .map((wait) => ({ ...wait, process, local: undefined, note: { client, stamp } }));
}

/** Without what may change: the holds are those of this moment. */
function ofThisProcess(wait: NestedWait): Unblocked {
  const { id, since, name, label, process, mode, permits, holds, breaks } = wait;
  return { id, since, name, label, process, mode, permits, holds, breaks, local: wait, note: undefined };
}

/** Whether a wait of this process still goes on and holds what it held. Those of others are looked at again. */
export function isUnchanged({ local, holds }: SeenWait): boolean {
  if (local === undefined) return true;
  return nestedWaits.has(local) && holds.every((owner) => local.holds.includes(owner));
}
