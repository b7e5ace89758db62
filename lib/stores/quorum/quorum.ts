import { Releaser } from '../../store/releaser.js';
import { Charters } from './charters.js';
import { Contention } from './contention.js';
import { Holdings } from './holdings.js';
import { QuorumLeaseLimit } from './lease-limit.js';
import { type Member, quorumOf } from './member.js';
import { Presence } from './presence.js';

/** The members, and all that is known of them. The operations of the store share it. */
export class Quorum {
  /** The number of members that are a majority. */
  readonly needed: number;
  readonly charters: Charters;
  readonly leaseLimit: QuorumLeaseLimit;
  readonly presence: Presence;
  readonly contention = new Contention();
  readonly holdings = new Holdings();
  /** One for each member. */
  readonly releasers: readonly Releaser[];

  /** @param leaseTime of the module, ms */
  constructor(
    readonly members: readonly Member[],
    readonly leaseTime: number,
  ) {
    this.needed = quorumOf(members.length);
    this.charters = new Charters(members, leaseTime);
    this.leaseLimit = new QuorumLeaseLimit(members, this.charters);
    this.presence = new Presence(members);
    this.releasers = members.map(({ store }) => new Releaser(store));
  }
}
