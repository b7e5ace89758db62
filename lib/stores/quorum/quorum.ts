import { now } from '../../runtime/clock.js';
import { monotonicTime } from '../../runtime/runtime.js';
import type { ReleaseRequest } from '../../store/lock-store.js';
import { Releaser } from '../../store/releaser.js';
import type { Answer } from './ballot.js';
import { Charters } from './charters.js';
import { type Hold, Holds } from './holds.js';
import { QuorumLeaseLimit } from './lease-limit.js';
import { type Member, quorumOf } from './member.js';
import { causeOf } from './outcomes.js';

/** ms after a split vote during which the members are asked one by one. */
const SPLIT_MEMORY = 500;
const MOST_SPLIT = 1_000;

/** The members, and all that is known of them. Absence only decides which answers a request waits for. */
export class Quorum {
  readonly needed: number;
  readonly charters: Charters;
  readonly leaseLimit: QuorumLeaseLimit;
  readonly holds = new Holds();
  readonly releasers: readonly Releaser[];
  /** The members whose last answer was late: the server may be frozen, or the network may drop packets. */
  readonly silent = new Set<number>();
  private readonly splits = new Map<string, { until: number; refusedBy?: string | undefined }>();

  /** @param leaseTime of the module, ms */
  constructor(
    readonly members: readonly Member[],
    readonly leaseTime: number,
  ) {
    this.needed = quorumOf(members.length);
    this.charters = new Charters(this);
    this.leaseLimit = new QuorumLeaseLimit(this);
    this.releasers = members.map(({ store }) => new Releaser(store));
  }

  isAbsent(index: number): boolean {
    return this.silent.has(index) || this.members[index]?.isDown === true;
  }

  /** The members that are not absent, in the order of the configuration, which is the same in all processes. */
  get present(): number[] {
    return [...this.members.keys()].filter((index) => !this.isAbsent(index));
  }

  note(index: number, answer: Answer<unknown>): void {
    // A subscription has no value. A member that has it already gives it without its server.
    const cause = !('value' in answer) ? causeOf(answer.error) : answer.value !== undefined && 'ReplyError';
    if (cause === 'ReplyError') this.silent.delete(index);
    if (cause === 'CommandTimeout' || cause === 'NotConnected') this.silent.add(index);
  }

  /** Releases a hold at a member, until the member has answered or the hold has ended. */
  giveBack(
    index: number,
    request: ReleaseRequest,
    leaseTime: number,
    hold: Hold | undefined,
    insist = hold?.isUnsureOf(index) === true,
  ): void {
    const until = Math.max(now() + leaseTime, hold?.until ?? 0);
    void this.releasers[index]?.release(request, until, { insist });
  }

  /** Notes that several processes asked at the same time, each got some members, and none a majority. */
  wasSplit(names: readonly string[]): void {
    if (this.splits.size > MOST_SPLIT) this.splits.clear();
    for (const name of names)
      this.splits.set(name, { ...this.splits.get(name), until: monotonicTime() + SPLIT_MEMORY });
  }

  /** After a split vote, the members are asked one by one until the first grant: a process that gets it has mostly no rival. */
  isSplit(names: readonly string[]): boolean {
    const isSplit = names.some((name) => (this.splits.get(name)?.until ?? 0) > monotonicTime());
    return isSplit && this.present.length >= this.needed;
  }

  /** Notes the owner in the way. @returns false if it is named again: it has the other members, or was left behind */
  noteRival(name: string, owner: string | undefined): boolean {
    const isNew = this.splits.get(name)?.refusedBy !== owner;
    if (isNew) this.splits.set(name, { until: 0, ...this.splits.get(name), refusedBy: owner });
    return isNew;
  }
}
