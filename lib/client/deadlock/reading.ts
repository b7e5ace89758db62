import type { LockStore, StoredLock } from '../../store/lock-store.js';
import { type NestedWait, nestedWaits } from './nested-wait.js';
import { decodeNote, type NotedWait, type WaitNote } from './wait-notes.js';

/** The note of a process, indexed by the owners that its waits hold. */
export interface ReadNote extends Pick<WaitNote, 'process' | 'stamp'> {
  under(owner: string): readonly NotedWait[];
}

/**
 * A cache for all looks of one moment: it reads each lock and each note once, and indexes the waits of this process
 * once. Without it, 1,000 waits that are checked together would cost 1,000,000 steps.
 */
export class Reading {
  private readonly locks = new Map<string, Promise<StoredLock | null>>();
  private readonly notes = new Map<string, Promise<ReadNote | undefined>>();
  private local: ReadonlyMap<string, readonly NestedWait[]> | undefined;

  /** @param store undefined: follow only the waits of this process */
  constructor(
    private readonly clientId: string,
    private readonly store?: Pick<LockStore, 'inspect' | 'waits'>,
  ) {}

  /** The waits of this process under a hold. {@link deadlockOf} drops those that have ended meanwhile. */
  under(owner: string): readonly NestedWait[] {
    this.local ??= byOwner(nestedWaits);
    return this.local.get(owner) ?? [];
  }

  /** @param wait of this process, or of another process with the same store */
  inspect({ name, local }: { readonly name: string; readonly local: NestedWait | undefined }) {
    // Another client of this process may have another store.
    return once(this.locks, `${local?.clientId ?? this.clientId} ${name}`, () =>
      local === undefined ? (this.store?.inspect(name) ?? Promise.resolve(null)) : local.inspect(),
    );
  }

  /** The note of another process. The client skips its own note, because its own state is newer. */
  noteOf(client: string): Promise<ReadNote | undefined> {
    const waits = client === this.clientId ? undefined : this.store?.waits;
    if (waits === undefined) return Promise.resolve(undefined);
    return once(this.notes, client, async () => {
      const note = decodeNote(await waits.find(client));
      if (note === undefined) return undefined;
      const { process, stamp } = note;
      const found = byOwner(note.waits);
      return { process, stamp, under: (owner) => found.get(owner) ?? [] };
    });
  }
}

function byOwner<W extends { readonly holds: readonly string[] }>(
  waits: Iterable<W>,
): ReadonlyMap<string, readonly W[]> {
  const found = new Map<string, W[]>();
  for (const wait of waits) {
    for (const owner of new Set(wait.holds)) {
      const under = found.get(owner);
      if (under === undefined) found.set(owner, [wait]);
      else under.push(wait);
    }
  }
  return found;
}

function once<T>(known: Map<string, Promise<T>>, key: string, ask: () => Promise<T>): Promise<T> {
  const before = known.get(key);
  if (before !== undefined) return before;
  const asked = ask();
  known.set(key, asked);
  return asked;
}
