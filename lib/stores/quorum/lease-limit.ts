import { LockUnavailableError } from '../../api/errors.js';
import { monotonicTime, sleep } from '../../runtime/runtime.js';
import type { LeaseLimit } from '../../store/lock-store.js';
import { type Membership, gather, valueAt } from './ballot.js';
import type { Charters } from './charters.js';

/** ms of rest after a failed raise. */
const PAUSE = 50;
/** Number of surveys of a process that knows no charter, and the pause between them, ms. */
const SURVEYS = 3;
const FOUNDING = 25;

/**
 * The longest hold. A longer one counts only after every member has acknowledged it: then each member that has not
 * restarted knows how long a restarted member must wait. Acquisitions below the limit need none of these steps.
 */
export class QuorumLeaseLimit implements LeaseLimit {
  private readonly raising = new Map<number, Promise<boolean>>();
  /** The members that have not acknowledged the last raise. */
  private missing: readonly string[] = [];
  private restsUntil = -Infinity;

  constructor(private readonly quorum: Membership & { readonly charters: Charters }) {}

  get most(): number {
    return this.quorum.charters.allowed;
  }

  async raise(name: string, leaseTime: number): Promise<Error | undefined> {
    const isAllowed = await this.isAllowed(leaseTime);
    return this.quorum.charters.conflict ?? (isAllowed ? undefined : this.refusal(name, leaseTime));
  }

  refusal(name: string, leaseTime: number): LockUnavailableError {
    const cause = new Error(
      `a lease of ${String(leaseTime)} ms is longer than the ${String(this.most)} ms that all nodes have acknowledged` +
        `; missing: ${this.missing.join(', ')}; ask for less, or bring these nodes back`,
    );
    return new LockUnavailableError(name, { cause, effect: 'refused' });
  }

  /** Asks the members to allow holds of this length. */
  isAllowed(leaseTime: number): Promise<boolean> {
    const raising = this.raising.get(leaseTime);
    if (raising !== undefined) return raising;
    const asking = this.ask(leaseTime).finally(() => this.raising.delete(leaseTime));
    this.raising.set(leaseTime, asking);
    return asking;
  }

  private async ask(leaseTime: number): Promise<boolean> {
    const { members, charters } = this.quorum;
    for (let surveys = 0; charters.allowed === 0 && surveys < SURVEYS; surveys++) {
      // Another process may be founding the quorum.
      if (surveys > 0) await sleep(FOUNDING);
      await charters.survey();
    }
    const { numbers } = charters;
    if (charters.allowed >= leaseTime) return true;
    if (numbers === undefined || charters.conflict !== undefined || monotonicTime() < this.restsUntil)
      return false;
    const generations = members.map(({ generation }) => generation);
    const raised = { id: numbers.id, size: members.length, longest: leaseTime, allowed: 0 };
    // By the end of the first round, each member has acknowledged it in the run in which it does so again in the second
    // round. So there was a moment at which all members had.
    for (let round = 1; round <= 2; round++) {
      const answers = await gather(
        this.quorum,
        (member) => (member.isDown ? undefined : member.amend(raised)),
        () => 'open',
      );
      const isMissing = (index: number) => {
        const { id, longest } = valueAt(answers, index) ?? {};
        const isAcknowledged = id === numbers.id && longest !== undefined && longest >= leaseTime;
        return !isAcknowledged || members[index]?.generation !== generations[index];
      };
      this.missing = members.flatMap(({ node }, index) => (isMissing(index) ? [node] : []));
      if (this.missing.length === 0) continue;
      this.restsUntil = monotonicTime() + PAUSE;
      return false;
    }
    charters.allowed = Math.max(charters.allowed, leaseTime);
    await gather(this.quorum, (member) => member.amend({ ...raised, allowed: leaseTime }));
    return true;
  }
}
