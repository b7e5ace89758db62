/** How many entries the smallest table of a Map has room for. Each removal uses one up, as an entry does. */
const LEAST_ROOM = 4;

/**
 * A Map for entries that come and go all the time. V8 gives a Map a new table when the room of the old one is used up, and
 * the old table points to the new one. If a table has lived for two minor collections by then, all tables that follow it,
 * with all their former entries, stay until the next full collection, and are copied by the minor ones. So a new Map is begun
 * before that: it has no table in common with the Map before it.
 *
 * An iteration may still come to an entry that was removed after it had begun.
 */
export class TransientMap<K, V> {
  private map = new Map<K, V>();
  /** From the present Map. */
  private removed = 0;

  get size(): number {
    return this.map.size;
  }

  get(key: K): V | undefined {
    return this.map.get(key);
  }

  has(key: K): boolean {
    return this.map.has(key);
  }

  set(key: K, value: V): void {
    this.map.set(key, value);
  }

  /** Takes as long as with a Map: copying the rest is spread over as many removals. */
  delete(key: K): boolean {
    if (!this.map.delete(key)) return false;
    this.removed++;
    if (this.removed + 1 >= LEAST_ROOM + this.map.size) {
      this.map = this.map.size === 0 ? new Map<K, V>() : new Map(this.map);
      this.removed = 0;
    }
    return true;
  }

  keys(): IterableIterator<K> {
    return this.map.keys();
  }

  values(): IterableIterator<V> {
    return this.map.values();
  }

  [Symbol.iterator](): IterableIterator<[K, V]> {
    return this.map.entries();
  }
}
