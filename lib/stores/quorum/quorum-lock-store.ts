import type { Asker } from '../../api/asker.js';
import { LockConfigError, LockUnavailableError } from '../../api/errors.js';
import type {
  AcquireAllReply,
  AcquireAllRequest,
  AcquireReply,
  AcquireRequest,
  HoldState,
  LeaseLimit,
  LockStore,
  QueueTerms,
  ReleaseReply,
  ReleaseRequest,
  RenewRequest,
  StoredLock,
  StoreLabels,
  StoreListing,
  StoreWaits,
  Subscription,
} from '../../store/lock-store.js';
import type { AskRequest, LossMessage } from '../../store/queue-messages.js';
import type { ConnectionChange, HealthDepth, StoreHealth } from '../../store/store-health.js';
import { tally } from './ballot.js';
import { forceRelease } from './forced-release.js';
import { Hold } from './holds.js';
import { MajorityAcquisition } from './majority-acquisition.js';
import { releaseEverywhere } from './majority-release.js';
import { MajorityRenewals } from './majority-renewals.js';
import { majorityState } from './majority-state.js';
import type { Member } from './member.js';
import { askMajority } from './outcomes.js';
import { Quorum } from './quorum.js';
import { quorumHealth } from './quorum-health.js';
import { quorumListing } from './quorum-listing.js';
import { quorumLabels, quorumWaits } from './quorum-notes.js';
import { subscribeToLosses, subscribeToReleases } from './subscriptions.js';

const NO_QUEUES =
  'has no fair lock, read-write lock or semaphore: each node would have a queue in an order of its own, and a majority ' +
  'of queues is not a queue. Use connection for these';

/**
 * Redlock: plain locks on several independent masters. The holder of a lock is the owner to which a majority of the
 * masters has granted it. Each member has its own store. The members are asked in parallel, and each answers in its own
 * time.
 */
export class QuorumLockStore implements LockStore {
  readonly noQueues = NO_QUEUES;
  readonly labels: StoreLabels;
  readonly waits: StoreWaits;
  readonly listing: StoreListing;
  readonly leaseLimit: LeaseLimit;
  private readonly quorum: Quorum;
  private readonly renewals: MajorityRenewals;

  /** @param leaseTime of the module, ms */
  constructor(
    private readonly members: readonly Member[],
    leaseTime: number,
  ) {
    const quorum = new Quorum(members, leaseTime);
    this.quorum = quorum;
    this.leaseLimit = quorum.leaseLimit;
    this.labels = quorumLabels(quorum);
    this.waits = quorumWaits(quorum);
    this.listing = quorumListing(quorum);
    this.renewals = new MajorityRenewals(quorum);
    members.forEach(({ store }, index) => {
      store.onConnectionChange(({ connected }) => {
        if (!connected) return;
        // A restarted member's waiting time counts from its first contact, and all members learn a longer lease time
        // before a lock needs it.
        void quorum.charters.mayVote(index).then(() => quorum.leaseLimit.isAllowed(leaseTime));
        quorum.releasers[index]?.hurry();
      });
    });
  }

  async acquire({ name, owner, leaseTime, leastToken, queue }: AcquireRequest): Promise<AcquireReply> {
    if (queue !== undefined) throw new LockConfigError('nodes', NO_QUEUES, { key: name });
    const reply = await this.acquireAll({ names: [name], owner, leaseTime, leastToken });
    return reply.granted ? { granted: true, fencingToken: reply.fencingTokens[0] ?? 0 } : reply;
  }

  async acquireAll(request: AcquireAllRequest): Promise<AcquireAllReply> {
    const { names, owner, leaseTime } = request;
    await this.admit(names, leaseTime);
    const { holds } = this.quorum;
    const hold = new Hold(leaseTime);
    for (const name of names) hold.fencingTokens.set(name, 0);
    holds.set(owner, hold);
    let isGranted = false;
    try {
      const reply = await new MajorityAcquisition(this.quorum, request, hold).run();
      isGranted = reply.granted;
      if (reply.granted)
        names.forEach((name, n) => hold.fencingTokens.set(name, reply.fencingTokens[n] ?? 0));
      return reply;
    } finally {
      if (!isGranted) holds.delete(owner);
    }
  }

  locationOf(name: string): string {
    return this.members.map(({ store }) => store.locationOf(name)).join(' ');
  }

  outageOf(name: string): LockUnavailableError | undefined {
    const down = this.members.filter(({ isDown }) => isDown);
    if (this.members.length - down.length >= this.quorum.needed) return undefined;
    const outcomes = down.map(({ node, store }) => {
      return { node, outcome: 'error', error: store.outageOf?.(name)?.cause } as const;
    });
    return new LockUnavailableError(name, { cause: outcomes[0]?.error, effect: 'refused', outcomes });
  }

  renew(requests: readonly RenewRequest[]): readonly Promise<HoldState>[] {
    return this.renewals.renew(requests);
  }

  async release(request: ReleaseRequest): Promise<ReleaseReply> {
    return await releaseEverywhere(this.quorum, request);
  }

  async subscribeToReleases(name: string, onWake: () => void): Promise<Subscription> {
    return await subscribeToReleases(this.quorum, name, onWake);
  }

  async subscribeToLosses(client: string, onMessage: (message: LossMessage) => void): Promise<Subscription> {
    return await subscribeToLosses(this.quorum, client, onMessage);
  }

  async inspect(name: string): Promise<StoredLock | null> {
    return majorityState(await askMajority(this.quorum, name, ({ store }) => store.inspect(name)));
  }

  async forceRelease(name: string, mode?: QueueTerms['mode'], asker?: Asker): Promise<boolean> {
    if (mode !== undefined) return false; // a quorum has plain locks only
    return await forceRelease(this.quorum, name, asker);
  }

  /** One member's message is enough, and the client reports each request once. */
  async requestRelease(request: AskRequest): Promise<boolean> {
    const { name } = request;
    const answers = await askMajority(this.quorum, name, async ({ store }) =>
      store.requestRelease?.(request),
    );
    return tally(answers, (isAsked) => isAsked === true) > 0;
  }

  async health(depth?: HealthDepth): Promise<StoreHealth> {
    const { charters } = this.quorum;
    // The charter may have changed.
    const [reports] = await Promise.all([
      Promise.all(this.members.map(({ store }) => store.health(depth))),
      charters.survey(true),
    ]);
    return quorumHealth(reports, charters);
  }

  onConnectionChange(listener: (change: ConnectionChange) => void): void {
    for (const { store } of this.members) store.onConnectionChange(listener);
  }

  async close(): Promise<void> {
    await Promise.all(this.quorum.releasers.map((releaser) => releaser.close()));
    await Promise.all(this.members.map(({ store }) => store.close()));
  }

  /**
   * @throws the reason against a lease of that length. If the members are silent, the attempt reports that for each of
   *   them
   */
  private async admit(names: readonly string[], leaseTime: number): Promise<void> {
    const { charters, leaseLimit } = this.quorum;
    const isAllowed = leaseTime <= charters.allowed || (await leaseLimit.isAllowed(leaseTime));
    const { conflict } = charters;
    if (conflict !== undefined) {
      void charters.survey();
      throw conflict;
    }
    if (!isAllowed && charters.allowed > 0) throw leaseLimit.refusal(names.join(','), leaseTime);
  }
}
