import type { LockClient } from '../core/lock-client.js';
import { assertKnownOptions, assertName, leaseTimeOf } from '../core/validation.js';
import { LockConfigError } from '../lock.errors.js';
import type { LockState } from '../lock.state.js';
import { Candidate } from './candidate.js';
import type { Election, ElectionOptions } from './election.js';

/** How many elections are remembered that nothing uses. */
const MOST_UNUSED = 1_000;

/** The elections of one service: one for each name, so that all code of a process sees the same state. */
export class Candidates {
  private readonly byName = new Map<string, Candidate>();
  private isClosed = false;

  constructor(
    private readonly client: LockClient,
    private readonly inspect: (name: string) => Promise<LockState | null>,
  ) {}

  /** Whether nothing has to be waited for at shutdown. */
  get isIdle(): boolean {
    for (const { state } of this.byName.values()) if (state !== 'idle') return false;
    return true;
  }

  get(name: string, options: ElectionOptions = {}): Election {
    assertName(name);
    assertKnownOptions(options, ['leaseTime'], 'getElection');
    const leaseTime = options.leaseTime === undefined ? undefined : leaseTimeOf(options.leaseTime);
    const candidate = this.byName.get(name) ?? this.add(name);
    if (leaseTime !== undefined && leaseTime !== candidate.leaseTime) {
      if (candidate.state !== 'idle') {
        const rule = `must be the one with which the election runs, ${lengthOf(candidate)}`;
        throw new LockConfigError('leaseTime', rule, { value: options.leaseTime, key: name });
      }
      candidate.leaseTime = leaseTime;
    }
    return candidate;
  }

  /** Ends all runs. Resolves when this process leads nowhere, at the latest at the deadline of the last lease. */
  async close(): Promise<void> {
    this.isClosed = true;
    await Promise.all([...this.byName.values()].map((candidate) => candidate.close()));
  }

  private add(name: string): Candidate {
    const candidate = new Candidate(name, this.client, () => this.inspect(name), undefined);
    if (this.isClosed) void candidate.close();
    if (this.byName.size >= MOST_UNUSED) {
      for (const [other, { isUnused }] of this.byName) if (isUnused) this.byName.delete(other);
    }
    this.byName.set(name, candidate);
    return candidate;
  }
}

const lengthOf = ({ leaseTime }: Candidate): string =>
  leaseTime === undefined ? "the module's" : `${String(leaseTime)} ms`;
