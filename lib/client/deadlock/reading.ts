import type { LockStore, StoredLock } from '../../store/lock-store.js';
import { type NestedWait, nestedWaits } from './nested-wait.js';
import { decodeNote, type NotedWait, type WaitNote } from './wait-notes.js';

/** What a process has told, by the owners of what its waits hold. */
export interface ReadNote extends Pick<WaitNote, 'process' | 'stamp'> {
  under(owner: string): readonly NotedWait[];
}

/**
 * What looks of one moment have in common: each lock and each note is read once, and the waits of this process are gone
 * through once. Otherwise a thousand waits that are looked at together would cost a million steps.
 */
export class Reading {
  private readonly locks = new Map<string, Promise<StoredLock | null>>();
  private readonly notes = new Map<string, Promise<ReadNote | undefined>>();
  private local: ReadonlyMap<string, readonly NestedWait[]> | undefined;

  /** @param store undefined: only the waits of this process are followed */
  constructor(
    private readonly clientId: string,
    private readonly store?: Pick<LockStore, 'inspect' | 'waits'>,
  ) {}

  /** The waits of this process under a hold. A wait that ends meanwhile is left out at the end of the look. */
  under(owner: string): readonly NestedWait[] {
    this.local ??= byOwner(nestedWaits);
    return this.local.get(owner) ?? [];
  }

  /** @param wait of this process, or of another one and of a client of the same store */
  inspect({ name, local }: { readonly name: string; readonly local: NestedWait | undefined }) {
    // Another client of this process may have another store.
    return once(this.locks, `${local?.clientId ?? this.clientId} ${name}`, () =>
      local === undefined ? (this.store?.inspect(name) ?? Promise.resolve(null)) : local.inspect(),
    );
  }

  /** What other processes have told. What the client itself has told is older than what it knows. */
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
