/**
 * Remembers at least the last entries, as many as `least`, and fewer than twice as many. Two tables take turns: a Map that
 * loses its oldest entry for each new one searches for it among all that it has lost before.
 */
export class LastEntries<K, V> {
  private present = new Map<K, V>();
  private former = new Map<K, V>();

  constructor(private readonly least: number) {}

  has(key: K): boolean {
    return this.present.has(key) || this.former.has(key);
  }

  get(key: K): V | undefined {
    return this.present.has(key) ? this.present.get(key) : this.former.get(key);
  }

  set(key: K, value: V): void {
    this.present.set(key, value);
    if (this.present.size >= this.least) this.turn();
  }

  /** Begins the next table, for a caller that counts in another way. */
  turn(): void {
    this.former = this.present;
    this.present = new Map();
  }

  delete(key: K): boolean {
    const wasPresent = this.present.delete(key);
    return this.former.delete(key) || wasPresent;
  }
}
