import type { QueueTerms } from '../../store/lock-store.js';
import { TransientMap } from '../../store/transient-map.js';
import type { Tenure } from './tenure.js';

const NONE: readonly Tenure[] = [];

/** The tenures of this process, by the name of the lock. Readers and owners of permits share a name. */
export class Tenures {
  private readonly byName = new TransientMap<string, Tenure[]>();

  get isEmpty(): boolean {
    return this.byName.size === 0;
  }

  *[Symbol.iterator](): Generator<Tenure> {
    for (const tenures of this.byName.values()) yield* tenures;
  }

  /** A copy, so that the caller may end tenures. */
  get all(): Tenure[] {
    const all: Tenure[] = [];
    // Not by `flat`, which takes much longer: there may be 300,000.
    for (const tenures of this.byName.values()) for (const tenure of tenures) all.push(tenure);
    return all;
  }

  of(name: string): readonly Tenure[] {
    return this.byName.get(name) ?? NONE;
  }

  add(tenure: Tenure): void {
    const { name } = tenure;
    const others = this.byName.get(name);
    if (others === undefined) this.byName.set(name, [tenure]);
    else others.push(tenure);
  }

  remove(tenure: Tenure): void {
    const { name } = tenure;
    const tenures = this.byName.get(name);
    const index = tenures?.indexOf(tenure) ?? -1;
    if (tenures === undefined || index < 0) return;
    if (tenures.length > 1) tenures.splice(index, 1);
    else this.byName.delete(name);
  }

  /** Whether this process also holds the other side of the read-write lock. */
  hasOtherMode(name: string, { kind, mode }: QueueTerms): boolean {
    return this.of(name).some(({ queue }) => queue?.kind === kind && queue.mode !== mode);
  }

  /** The last token of a lock that this process holds. Hand-offs increase it without a message to the store. */
  lastToken(name: string): number | undefined {
    const tenures = this.of(name);
    return tenures.length === 0 ? undefined : Math.max(...tenures.map(({ fencingToken }) => fencingToken));
  }
}
