/** Mulberry32: small, quick, and the same sequence for the same seed on every machine. */
export class Random {
  constructor(private state: number) {}

  /** From 0 to less than 1. */
  next(): number {
    this.state = (this.state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  }

  between(least: number, most: number): number {
    return Math.round(least + this.next() * (most - least));
  }

  pick<T>(list: readonly T[]): T {
    return list[Math.floor(this.next() * list.length)]!;
  }

  /** Some of them, one at least. */
  some<T>(list: readonly T[]): T[] {
    const chosen = list.filter(() => this.next() < 0.5);
    return chosen.length > 0 ? chosen : [this.pick(list)];
  }

  /** A sequence of its own, whatever is drawn from this one in between. */
  fork(): Random {
    return new Random(this.between(0, 2 ** 31));
  }
}
