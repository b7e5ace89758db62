interface Item {
  readonly member: string;
  readonly score: number;
}

const isBefore = (a: Item, b: Item): boolean =>
  a.score !== b.score ? a.score < b.score : a.member < b.member;

/** Members by score, those of one score by their bytes. */
export class SortedSet {
  private readonly scores = new Map<string, number>();
  private readonly items: Item[] = [];

  get size(): number {
    return this.items.length;
  }

  score(member: string): number | undefined {
    return this.scores.get(member);
  }

  set(member: string, score: number): void {
    this.delete(member);
    this.scores.set(member, score);
    const item = { member, score };
    this.items.splice(this.placeOf(item), 0, item);
  }

  delete(member: string): boolean {
    const score = this.scores.get(member);
    if (score === undefined) return false;
    this.scores.delete(member);
    this.items.splice(this.placeOf({ member, score }), 1);
    return true;
  }

  rank(member: string): number | undefined {
    const score = this.scores.get(member);
    return score === undefined ? undefined : this.placeOf({ member, score });
  }

  /** In order. */
  all(): readonly Item[] {
    return this.items;
  }

  copy(): SortedSet {
    const copy = new SortedSet();
    for (const item of this.items) {
      copy.scores.set(item.member, item.score);
      copy.items.push(item);
    }
    return copy;
  }

  /** Where it stands, or would stand. */
  private placeOf(item: Item): number {
    let [low, high] = [0, this.items.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (isBefore(this.items[middle]!, item)) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
