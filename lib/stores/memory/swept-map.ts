/**
 * A map that forgets what is over, whenever it has doubled: a name that nobody asks for again leaves nothing for good.
 * What is over may still be found until then.
 */
export class SweptMap<V> extends Map<string, V> {
  private sweepAt = 1_000;

  constructor(private readonly isOver: (value: V) => boolean) {
    super();
  }

  override set(key: string, value: V): this {
    if (this.size >= this.sweepAt) {
      // Before it is there: what is new may have yet to begin.
      for (const [other, old] of this) if (this.isOver(old)) this.delete(other);
      this.sweepAt = Math.max(1_000, 2 * this.size);
    }
    return super.set(key, value);
  }
}
