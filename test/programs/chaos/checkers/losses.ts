import { type Attempt, deadlineOf, type FaultInterval, type History } from '../history.js';

/** The longest lease that the holder has asked for. */
const longestLease = ({ leaseTime, extensions }: Attempt) =>
  extensions.reduce((longest, extension) => Math.max(longest, extension.leaseTime), leaseTime);

/** A multi-lock that was handed one of its locks has several, and does not say which of them holds which lock. */
const ownersOf = ({ owner }: Attempt) => owner?.split(' ')[0]?.split(',') ?? [];

/**
 * Which holds the store may have forgotten, and for how long that explains what a lock must not allow. A hold belongs
 * to a tenure, which began with the first attempt of its owner: hand-offs inside one process go on with what the store
 * has forgotten, until the process is told.
 */
export class Losses {
  private readonly tenures = new Map<string, number>();
  private readonly faults: readonly FaultInterval[];

  constructor({ attempts, faults }: Pick<History, 'attempts' | 'faults'>) {
    this.faults = faults.filter(({ severity }) => severity === 'loss');
    for (const attempt of attempts) {
      for (const owner of ownersOf(attempt)) {
        this.tenures.set(owner, Math.min(this.tenures.get(owner) ?? Infinity, attempt.invoked));
      }
    }
  }

  /** The fault after which the store may not have known of the hold any more. */
  of(hold: Attempt): FaultInterval | undefined {
    return this.faults.find((fault) => this.concerns(fault, hold));
  }

  /** The fault that explains why another got in beside the hold, from one moment to the other. */
  explain(hold: Attempt, from: number, to: number): FaultInterval | undefined {
    return this.faults.find(
      (fault) => this.concerns(fault, hold) && from >= fault.from && to <= fault.to + longestLease(hold),
    );
  }

  /** Whether anything about the lock may be unclear at the moment because the store has forgotten a hold. */
  unclear(lock: string, at: number, lease: number): boolean {
    return this.faults.some(
      (fault) => (fault.lock ?? lock) === lock && at >= fault.from && at <= fault.to + lease,
    );
  }

  private concerns(fault: FaultInterval, hold: Attempt): boolean {
    const begun = ownersOf(hold).map((owner) => this.tenures.get(owner) ?? Infinity);
    const since = Math.min(hold.invoked, ...begun);
    return (fault.lock ?? hold.lock) === hold.lock && since < fault.to && deadlineOf(hold) > fault.from;
  }
}
