/**
 * A map that removes ended values whenever it has doubled, so that a name that is never asked for again leaves nothing for
 * good. An ended value may still be found until then.
 */
export class SweptMap<V> extends Map<string, V> {
  private sweepAt = 1_000;

  constructor(private readonly isOver: (value: V) => boolean) {
    super();
  }

  override set(key: string, value: V): this {
    if (this.size >= this.sweepAt) {
      // The new value is added after the sweep, because it may have yet to begin.
      for (const [other, old] of this) if (this.isOver(old)) this.delete(other);
      this.sweepAt = Math.max(1_000, 2 * this.size);
    }
    return super.set(key, value);
  }
}
