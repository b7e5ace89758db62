import { setTimeout as sleep } from 'node:timers/promises';

/** Counts who is inside at once, per key: what a lock is to keep at one. */
export class Entries {
  most = 0;
  total = 0;
  private readonly inside = new Map<string, number>();

  async visit<T>(result: T, key = '', stay = 5): Promise<T> {
    this.enter(key);
    await sleep(stay);
    this.leave(key);
    return result;
  }

  enter(key = ''): void {
    const inside = (this.inside.get(key) ?? 0) + 1;
    this.inside.set(key, inside);
    this.total++;
    this.most = Math.max(this.most, inside);
  }

  leave(key = ''): void {
    this.inside.set(key, (this.inside.get(key) ?? 0) - 1);
  }
}
