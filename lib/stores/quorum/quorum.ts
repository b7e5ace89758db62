import { Releaser } from '../../store/releaser.js';
import { Charters } from './charters.js';
import { Holds } from './holds.js';
import { QuorumLeaseLimit } from './lease-limit.js';
import { type Member, quorumOf } from './member.js';
import { Presence } from './presence.js';
import { SplitVotes } from './split-votes.js';

/** The members, and all that is known of them. The operations of the store share it. */
export class Quorum {
  /** The number of members that are a majority. */
  readonly needed: number;
  readonly presence: Presence;
  readonly charters: Charters;
  readonly leaseLimit: QuorumLeaseLimit;
  readonly splitVotes = new SplitVotes();
  readonly holds = new Holds();
  /** One for each member. */
  readonly releasers: readonly Releaser[];

  /** @param leaseTime of the module, ms */
  constructor(
    readonly members: readonly Member[],
    readonly leaseTime: number,
  ) {
    this.needed = quorumOf(members.length);
    this.presence = new Presence(members);
    this.charters = new Charters(this);
    this.leaseLimit = new QuorumLeaseLimit(this);
    this.releasers = members.map(({ store }) => new Releaser(store));
  }
}
