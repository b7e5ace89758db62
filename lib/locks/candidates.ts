import type { LockClient } from '../core/lock-client.js';
import { assertKnownOptions, assertName, leaseTimeOf } from '../core/validation.js';
import { LockConfigError } from '../lock.errors.js';
import type { LockState } from '../lock.state.js';
import { Candidate } from './candidate.js';
import type { Election, ElectionOptions } from './election.js';

/** How many elections are kept that nothing uses. */
const MOST_UNUSED = 1_000;

/** The elections of one service: one for each name, so that all code of a process sees the same state. */
export class Candidates {
  private readonly byName = new Map<string, Candidate>();
  /** Those that nothing used when there were too many. Code that has one may still use it. */
  private readonly unused = new Map<string, WeakRef<Candidate>>();
  private readonly forgotten = new FinalizationRegistry<string>((name) => {
    if (this.unused.get(name)?.deref() === undefined) this.unused.delete(name);
  });
  private isClosed = false;

  constructor(
    private readonly client: LockClient,
    private readonly inspect: (name: string) => Promise<LockState | null>,
  ) {}

  get inUse(): readonly Election[] {
    return [...this.byName.values()].filter(({ isUnused }) => !isUnused);
  }

  get(name: string, options: ElectionOptions = {}): Election {
    assertName(name);
    assertKnownOptions(options, ['leaseTime'], 'getElection');
    const leaseTime = options.leaseTime === undefined ? undefined : leaseTimeOf(options.leaseTime);
    const candidate = this.byName.get(name) ?? this.unused.get(name)?.deref() ?? this.add(name);
    if (leaseTime !== undefined && leaseTime !== candidate.leaseTime) {
      if (candidate.state !== 'idle') {
        const rule = `must be the one with which the election runs, ${lengthOf(candidate)}`;
        throw new LockConfigError('leaseTime', rule, { value: options.leaseTime, key: name });
      }
      candidate.leaseTime = leaseTime;
    }
    return candidate;
  }

  /** Ends all runs. Resolves when this process leads nowhere. */
  async close(): Promise<void> {
    this.isClosed = true;
    const unused = [...this.unused.values()].map((reference) => reference.deref());
    const all = [...this.byName.values(), ...unused];
    await Promise.all(all.map(async (candidate) => await candidate?.close()));
  }

  private keep(candidate: Candidate): void {
    this.byName.set(candidate.name, candidate);
    this.unused.delete(candidate.name);
  }

  private add(name: string): Candidate {
    const candidate = new Candidate(name, this.client, {
      inspect: () => this.inspect(name),
      onUse: (used) => {
        this.keep(used);
      },
    });
    if (this.isClosed) void candidate.close();
    if (this.byName.size >= MOST_UNUSED) this.letGo();
    this.byName.set(name, candidate);
    return candidate;
  }

  private letGo(): void {
    for (const [name, candidate] of this.byName) {
      if (!candidate.isUnused) continue;
      this.byName.delete(name);
      this.unused.set(name, new WeakRef(candidate));
      this.forgotten.register(candidate, name);
    }
  }
}

const lengthOf = ({ leaseTime }: Candidate): string =>
  leaseTime === undefined ? "the module's" : `${String(leaseTime)} ms`;
