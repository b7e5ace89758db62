import { LockUnavailableError } from '../../api/errors.js';
import { monotonicTime, sleep } from '../../runtime/runtime.js';
import type { LeaseLimit } from '../../store/lock-store.js';
import { ANSWER_TIME, askAll } from './ask-all.js';
import type { Charters } from './charters.js';
import type { Member } from './member.js';

/** ms of rest after a failed raise. */
const PAUSE = 50;
/** Number of surveys of a process that knows no charter, and the pause between them, ms. */
const LOOKS = 3;
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

  constructor(
    private readonly members: readonly Member[],
    private readonly charters: Charters,
  ) {}

  get most(): number {
    return this.charters.allowed;
  }

  async raise(name: string, leaseTime: number): Promise<Error | undefined> {
    const isAllowed = await this.isAllowed(leaseTime);
    return this.charters.conflict ?? (isAllowed ? undefined : this.refusal(name, leaseTime));
  }

  refusal(name: string, leaseTime: number): LockUnavailableError {
    const { most } = this;
    const cause = new Error(
      `a lease of ${String(leaseTime)} ms is longer than the ${String(most)} ms that all nodes have acknowledged` +
        `; missing: ${this.missing.join(', ')}; ask for less, or bring these nodes back`,
    );
    return new LockUnavailableError(name, { cause, effect: 'refused' });
  }

  /** Asks the members to allow holds of this length. */
  isAllowed(leaseTime: number): Promise<boolean> {
    let raising = this.raising.get(leaseTime);
    if (raising === undefined) {
      raising = this.ask(leaseTime).finally(() => this.raising.delete(leaseTime));
      this.raising.set(leaseTime, raising);
    }
    return raising;
  }

  private async ask(leaseTime: number): Promise<boolean> {
    const { members, charters } = this;
    if (charters.allowed === 0) {
      await askAll(members, (_, index) => charters.look(index), ANSWER_TIME);
      const isStrange = members.some((_, index) => (charters.quarantineOf(index) ?? 0) > 0);
      if (isStrange || charters.allowed < leaseTime) await charters.survey();
      // Another process may be founding the quorum.
      for (let looks = 1; charters.numbers === undefined && looks < LOOKS; looks++) {
        await sleep(FOUNDING);
        await charters.survey();
      }
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
      const answers = await askAll(members, (member) => member.amend(raised), Infinity);
      const isMissing = (index: number) => {
        const { id, longest = 0 } = answers[index] ?? {};
        return id !== numbers.id || longest < leaseTime || members[index]?.generation !== generations[index];
      };
      this.missing = members.flatMap(({ node }, index) => (isMissing(index) ? [node] : []));
      if (this.missing.length === 0) continue;
      this.restsUntil = monotonicTime() + PAUSE;
      return false;
    }
    charters.allowed = Math.max(charters.allowed, leaseTime);
    await askAll(members, (member) => member.amend({ ...raised, allowed: leaseTime }), 0);
    return true;
  }
}
