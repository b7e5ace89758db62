import { LastEntries } from './last-entries.js';

/** Remembers the last 1,000 keys. */
export class Seen extends LastEntries<string, true> {
  constructor() {
    super(1_000);
  }

  /** @returns whether the key is new */
  add(key: string): boolean {
    const isNew = !this.has(key);
    if (isNew) this.set(key, true);
    return isNew;
  }
}
