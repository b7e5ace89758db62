import { wrongType } from './replies.js';
import type { SortedSet } from './sorted-set.js';

export type Value =
  | { readonly type: 'string'; readonly text: string }
  | { readonly type: 'hash'; readonly fields: Map<string, string> }
  | { readonly type: 'zset'; readonly set: SortedSet };

export interface Entry {
  value: Value;
  /** ms of the server's wall clock. */
  expiresAt: number | undefined;
}

/** The keys of a server, each of which may have an end. */
export class Database {
  private entries = new Map<string, Entry>();

  /** @param now ms of the server's wall clock */
  constructor(private readonly now: () => number) {}

  find(key: string): Entry | undefined {
    const entry = this.entries.get(key);
    // In the ms of its end, a key is still there.
    if (entry?.expiresAt === undefined || entry.expiresAt >= this.now()) return entry;
    this.entries.delete(key);
    return undefined;
  }

  text(key: string): string | undefined {
    const value = this.find(key)?.value;
    if (value === undefined) return undefined;
    if (value.type !== 'string') throw wrongType();
    return value.text;
  }

  hash(key: string): Map<string, string> | undefined {
    const value = this.find(key)?.value;
    if (value === undefined) return undefined;
    if (value.type !== 'hash') throw wrongType();
    return value.fields;
  }

  sortedSet(key: string): SortedSet | undefined {
    const value = this.find(key)?.value;
    if (value === undefined) return undefined;
    if (value.type !== 'zset') throw wrongType();
    return value.set;
  }

  set(key: string, value: Value, expiresAt?: number): void {
    this.entries.set(key, { value, expiresAt });
  }

  delete(key: string): boolean {
    return this.find(key) !== undefined && this.entries.delete(key);
  }

  clear(): void {
    this.entries.clear();
  }

  /** In the order in which they came. */
  keys(): string[] {
    return [...this.entries.keys()].filter((key) => this.find(key) !== undefined);
  }

  /** What another server has that has followed this one up to now. */
  copy(now: () => number): Database {
    const copy = new Database(now);
    for (const [key, { value, expiresAt }] of this.entries) copy.set(key, copyOf(value), expiresAt);
    return copy;
  }
}

function copyOf(value: Value): Value {
  if (value.type === 'hash') return { type: 'hash', fields: new Map(value.fields) };
  if (value.type === 'zset') return { type: 'zset', set: value.set.copy() };
  return value;
}
