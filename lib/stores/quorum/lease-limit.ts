import { LockUnavailableError } from '../../api/errors.js';
import { monotonicTime } from '../../runtime/runtime.js';
import type { LeaseLimit } from '../../store/lock-store.js';
import { gather, valuesOf } from './ballot.js';
import type { Quorum } from './quorum.js';

/** ms of rest after a failed raise. */
const PAUSE = 50;
/** Surveys of a process that knows no charter. */
const SURVEYS = 3;

/** The longest hold, by rule 4 in docs/design/redlock.md. Acquisitions below the limit need none of these steps. */
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

  /** Repeats the raise that a member has missed. A process that only looks has raised nothing. */
  async repeat(): Promise<void> {
    if (this.missing.length > 0) await this.raise(undefined, this.quorum.leaseTime);
  }

  private async ask(leaseTime: number, isRepeated = false): Promise<void> {
    const { members, charters } = this.quorum;
    for (let surveys = 0; charters.allowed === 0 && surveys < SURVEYS; surveys++) await charters.survey();
    const { numbers, conflict } = charters;
    if (charters.allowed >= leaseTime || numbers === undefined || conflict !== undefined) return;
    if (monotonicTime() < this.restsUntil) return;
    const generations = members.map(({ generation }) => generation);
    const raised = { id: numbers.id, size: members.length, longest: leaseTime };
    // Two rounds over the same connections show a moment at which all members had acknowledged it.
    for (let round = 1; round <= 2; round++) {
      const answers = await gather(
        this.quorum,
        (member) => (member.isDown ? undefined : member.charter(raised)),
        () => 'open',
      );
      this.missing = members.flatMap(({ node, generation }, index) => {
        const { id, longest = 0 } = valuesOf([answers[index]])[0]?.charter ?? {};
        const isAcknowledged = id === numbers.id && longest >= leaseTime;
        return isAcknowledged && generation === generations[index] ? [] : [node];
      });
      if (this.missing.length === 0) continue;
      const isReplaced = members.some(({ generation }, index) => generation !== generations[index]);
      // Idle connections that were dropped have been replaced meanwhile.
      if (isReplaced && !isRepeated) await this.ask(leaseTime, true);
      else this.restsUntil = monotonicTime() + PAUSE;
      return;
    }
    charters.remember([{ ...numbers, longest: leaseTime, allowed: leaseTime }]);
    await gather(this.quorum, (member) => member.charter({ ...raised, allowed: leaseTime }));
  }
}
