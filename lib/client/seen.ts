import { oldestBeyond } from '../store/oldest-beyond.js';

/** Remembers the last 1,000 keys. */
export class Seen {
  private readonly keys = new Set<string>();

  has(key: string): boolean {
    return this.keys.has(key);
  }

  /** @returns whether the key is new */
  add(key: string): boolean {
    if (this.keys.has(key)) return false;
    this.keys.add(key);
    const oldest = oldestBeyond(MOST, this.keys);
    if (oldest !== undefined) this.keys.delete(oldest);
    return true;
  }
}

const MOST = 1_000;
