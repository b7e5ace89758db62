/** A Map of the last entries: if a new key exceeds the bound, the oldest key is forgotten. */
export class LastEntries<K, V> extends Map<K, V> {
  constructor(private readonly most: number) {
    super();
  }

  override set(key: K, value: V): this {
    super.set(key, value);
    const oldest = this.size > this.most ? this.keys().next() : undefined;
    if (oldest?.done === false) this.delete(oldest.value);
    return this;
  }
}
