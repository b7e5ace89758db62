import type { LockClient } from '../../client/lock-client.js';
import { assertKnownOptions, assertName, leaseTimeOf } from '../../client/validation.js';
import { LockConfigError } from '../../api/errors.js';
import type { LockState } from '../../api/lock-state.js';
import { Candidate } from './candidate.js';
import type { Election, ElectionOptions } from '../../api/election.js';
import type { ElectionRun } from './election-run.js';
import { LeaderNews } from './leader-news.js';
import { LastEntries } from '../../client/last-entries.js';

/** Elections, at least, that are kept without use. */
const KEPT = 1_000;

/** The elections of one service. All candidates of one name share the state of its run. */
export class Elections {
  /** A candidate that was dropped here still shows the state of its name's run. */
  private readonly candidates = new LastEntries<string, Candidate>(KEPT);
  readonly runs = new Map<string, ElectionRun>();
  readonly news = new LeaderNews();
  isClosed = false;

  constructor(
    readonly client: LockClient,
    readonly inspect: (name: string) => Promise<LockState | null>,
  ) {}

  get inUse(): readonly Election[] {
    const names = new Set([...this.runs.keys(), ...this.news.watched]);
    return [...names].map((name) => this.candidate(name));
  }

  get(name: string, options: ElectionOptions = {}): Election {
    assertName(name);
    assertKnownOptions(options, ['leaseTime'], 'getElection');
    const leaseTime = options.leaseTime === undefined ? undefined : leaseTimeOf(options.leaseTime);
    const candidate = this.candidate(name);
    if (leaseTime === undefined) return candidate;
    const run = this.runs.get(name);
    if (run !== undefined && run.leaseTime !== leaseTime) {
      const length = run.leaseTime === undefined ? "the module's" : `${String(run.leaseTime)} ms`;
      const rule = `must be the one with which the election runs, ${length}`;
      throw new LockConfigError('leaseTime', rule, { value: options.leaseTime, key: name });
    }
    candidate.leaseTime = leaseTime;
    return candidate;
  }

  /** Ends all runs. Resolves when this process leads no election. */
  async close(): Promise<void> {
    this.isClosed = true;
    const closed = [...this.runs.values()].map((run) => run.close());
    this.news.complete();
    await Promise.all(closed);
  }

  private candidate(name: string): Candidate {
    let candidate = this.candidates.get(name);
    if (candidate === undefined) {
      candidate = new Candidate(name, this);
      this.candidates.set(name, candidate);
    }
    return candidate;
  }
}
