import { LockUnavailableError } from '../../api/errors.js';
import { monotonicTime, sleep } from '../../runtime/runtime.js';
import type { LeaseLimit } from '../../store/lock-store.js';
import { gather, valueAt } from './ballot.js';
import type { Quorum } from './quorum.js';

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
  private readonly raising = new Map<number, Promise<void>>();
  /** The members that have not acknowledged the last raise. */
  private missing: readonly string[] = [];
  private restsUntil = -Infinity;

  constructor(private readonly quorum: Quorum) {}

  get most(): number {
    return this.quorum.charters.allowed;
  }

  /** No error if the members are silent: the attempt reports that for each of them. */
  async raise(name: string | undefined, leaseTime: number): Promise<Error | undefined> {
    const { charters } = this.quorum;
    const raising =
      this.raising.get(leaseTime) ?? this.ask(leaseTime).finally(() => this.raising.delete(leaseTime));
    this.raising.set(leaseTime, raising);
    await raising;
    // All members may have one charter by now.
    if (charters.conflict !== undefined) void charters.survey();
    if (charters.conflict !== undefined || this.most === 0 || this.most >= leaseTime)
      return charters.conflict;
    const cause = new Error(
      `a lease of ${String(leaseTime)} ms is longer than the ${String(this.most)} ms that all nodes have acknowledged` +
        `; missing: ${this.missing.join(', ')}; ask for less, or bring these nodes back`,
    );
    return new LockUnavailableError(name, { cause, effect: 'refused' });
  }

  private async ask(leaseTime: number): Promise<void> {
    const { members, charters } = this.quorum;
    for (let surveys = 0; charters.allowed === 0 && surveys < SURVEYS; surveys++) {
      // Another process may be founding the quorum.
      if (surveys > 0) await sleep(FOUNDING);
      await charters.survey();
    }
    const { numbers, conflict } = charters;
    if (charters.allowed >= leaseTime || numbers === undefined || conflict !== undefined) return;
    if (monotonicTime() < this.restsUntil) return;
    const connections = () => members.map(({ generation }) => generation);
    let generations = connections();
    let isRepeated = false;
    const raised = { id: numbers.id, size: members.length, longest: leaseTime };
    // By the end of the first round, each member has acknowledged it in the run in which it does so again in the second
    // round. So there was a moment at which all members had.
    for (let round = 1; round <= 2; round++) {
      const answers = await gather(
        this.quorum,
        (member) => (member.isDown ? undefined : member.charter(raised)),
        () => 'open',
      );
      const isMissing = (index: number) => {
        const { id, longest } = valueAt(answers, index)?.charter ?? {};
        const isAcknowledged = id === numbers.id && longest !== undefined && longest >= leaseTime;
        return !isAcknowledged || members[index]?.generation !== generations[index];
      };
      this.missing = members.flatMap(({ node }, index) => (isMissing(index) ? [node] : []));
      if (this.missing.length === 0) continue;
      const present = connections();
      // Idle connections that were dropped have been replaced under the round. It begins again, once.
      if (!isRepeated && present.join() !== generations.join()) {
        [isRepeated, generations, round] = [true, present, 0];
        continue;
      }
      this.restsUntil = monotonicTime() + PAUSE;
      return;
    }
    charters.remember([{ ...numbers, longest: leaseTime, allowed: leaseTime }]);
    await gather(this.quorum, (member) => member.charter({ ...raised, allowed: leaseTime }));
  }
}
