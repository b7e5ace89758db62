import { LockConfigError, LockUnavailableError } from '../../api/errors.js';
import { asAnswer, type Found } from '../../api/error-guards.js';
import type { Asker } from '../../api/asker.js';
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
import { MajorityAcquisition, noMajority } from './majority-acquisition.js';
import { type NodeAnswer, decide, tally } from './ballot.js';
import { askMembers, outcomesOf } from './ask-members.js';
import { ForcedReleases } from './forced-releases.js';
import { MajorityRenewals } from './majority-renewals.js';
import { Hints } from './hints.js';
import { Holding } from './holdings.js';
import { majorityState } from './majority-state.js';
import type { Member, MemberStore } from './member.js';
import { whyNotHeld } from './not-held.js';
import { Quorum } from './quorum.js';
import { quorumListing } from './quorum-listing.js';
import { quorumLabels, quorumWaits } from './quorum-notes.js';
import { quorumHealth } from './quorum-health.js';
import { subscribeAll } from './subscribe-all.js';
import { WakeUp } from './wake-up.js';
import { now } from '../../runtime/clock.js';

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
  private readonly forcedReleases: ForcedReleases;

  /** @param leaseTime of the module, ms */
  constructor(
    private readonly members: readonly Member[],
    private readonly leaseTime: number,
  ) {
    const quorum = new Quorum(members, leaseTime);
    const { charters, leaseLimit, releasers } = quorum;
    this.quorum = quorum;
    this.leaseLimit = leaseLimit;
    this.labels = quorumLabels(quorum);
    this.waits = quorumWaits(quorum);
    this.listing = quorumListing(quorum);
    this.renewals = new MajorityRenewals(quorum);
    this.forcedReleases = new ForcedReleases(quorum);
    members.forEach(({ store }, index) => {
      store.onConnectionChange(({ connected }) => {
        if (!connected) return;
        // A restarted member's waiting time counts from its first contact, and all members learn a longer lease time
        // before a lock needs it.
        void charters.mayVote(index).then(() => leaseLimit.isAllowed(leaseTime));
        releasers[index]?.hurry();
      });
    });
  }

  // Field by field, because a spread is slow and each node of each acquisition passes here.
  async acquire({ name, owner, leaseTime, leastToken, queue }: AcquireRequest): Promise<AcquireReply> {
    if (queue !== undefined) throw new LockConfigError('nodes', NO_QUEUES, { key: name });
    const reply = await this.take<AcquireReply>(
      { names: [name], owner, leaseTime, leastToken },
      (store, token) => store.acquire({ name, owner, leaseTime, leastToken: token }),
      (answer) =>
        answer.granted ? { granted: true, fencingTokens: [answer.fencingToken] } : { ...answer, name },
    );
    return reply.granted ? { granted: true, fencingToken: reply.fencingTokens[0] ?? 0 } : reply;
  }

  async acquireAll(request: AcquireAllRequest): Promise<AcquireAllReply> {
    return await this.take<AcquireAllReply>(
      request,
      (store, leastToken) => store.acquireAll({ ...request, leastToken }),
      (reply) => reply,
    );
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
    const { name, owner, leaseTime, queue } = request;
    // A lock stays taken for at most the longest hold.
    const { leaseLimit, holdings, releasers, needed } = this.quorum;
    if ((request.keepFor ?? 0) > leaseLimit.most) await leaseLimit.isAllowed(request.keepFor ?? 0);
    const keepFor = request.keepFor && Math.min(request.keepFor, leaseLimit.most);
    const holding = holdings.get(owner);
    const fencingToken = request.fencingToken ?? holding?.fencingTokens.get(name);
    const release = { name, owner, fencingToken, keepFor, leaseTime, queue };
    const until = Math.max(now() + this.leaseTime, holding?.until ?? 0);
    holding?.released.add(name);
    const answers = this.members.map((_, index) =>
      holding?.mayBeHeldBy(index) === false
        ? Promise.resolve<ReleaseReply>('deleted')
        : this.releaseAt(index, release),
    );
    const decision = await decide(answers, (cast) => {
      if (tally(cast, (reply) => reply === 'released') >= needed) return 'released';
      if (tally(cast, (reply) => reply !== 'released') > this.members.length - needed)
        return whyNotHeld(cast);
      return cast.includes(undefined) ? undefined : { cast };
    });
    if (typeof decision === 'object' && 'cast' in decision) {
      throw noMajority(name, outcomesOf(this.members, decision.cast), { effect: 'unknown' });
    }
    if (holding?.released.size === holding?.fencingTokens.size) holdings.delete(owner);
    // The lock is free. A member without an answer, or with an older request under way, gets the release until the
    // lease has ended.
    answers.forEach((answer, index) => {
      const repeat = () => {
        void releasers[index]?.release(release, until, { insist: holding?.isUnsureOf(index) === true });
      };
      answer.then(() => {
        if (holding?.isUnsureOf(index) === true) repeat();
      }, repeat);
    });
    if (typeof decision !== 'string') throw decision;
    return decision;
  }

  private releaseAt(index: number, release: ReleaseRequest): Promise<Found<ReleaseReply>> {
    const { members, presence } = this.quorum;
    const sentAt = presence.asked(index);
    const sent = members[index]?.store.release(release) ?? Promise.resolve<ReleaseReply>('deleted');
    return sent.then(
      (reply) => {
        presence.answered(index, sentAt);
        return reply;
      },
      (error: unknown) => {
        presence.failed(index, sentAt, error);
        return asAnswer(error);
      },
    );
  }

  async subscribeToReleases(name: string, onWake: () => void): Promise<Subscription> {
    const { members, presence, contention, charters } = this.quorum;
    const votes = (index: number) => charters.quarantineOf(index) === 0;
    const wakeUp = new WakeUp(members.length, votes, () => {
      contention.woken(name);
      // An even number of members is easily split in half.
      if (presence.present().length < members.length) contention.expect([name]);
      onWake();
    });
    const open = (store: LockStore, index: number, isOpen: () => boolean) =>
      store.subscribeToReleases(name, () => {
        if (isOpen()) wakeUp.tell(index);
      });
    const close = () => {
      wakeUp.close();
    };
    return await subscribeAll(members, {
      open,
      close,
      refusal: (cast) => this.subscriptionRefused(name, cast),
    });
  }

  async subscribeToLosses(client: string, onMessage: (message: LossMessage) => void): Promise<Subscription> {
    const hints = new Hints(this.members.length, (owner, forced) => {
      onMessage({ type: 'lost', owner, forced });
    });
    const open = (store: MemberStore, index: number, isOpen: () => boolean) =>
      store.queues.subscribe(client, (message) => {
        if (!isOpen()) return;
        if (message.type === 'lost') hints.add(index, message.owner, message.forced);
        else if (message.type === 'missed' || message.type === 'asked') onMessage(message);
      });
    const close = () => {
      hints.close();
    };
    return await subscribeAll(this.members, {
      open,
      close,
      refusal: (cast) => this.subscriptionRefused(undefined, cast),
    });
  }

  async inspect(name: string): Promise<StoredLock | null> {
    const states = await askMembers(this.quorum, name, (store) => store.inspect(name));
    return majorityState(states);
  }

  async forceRelease(name: string, mode?: QueueTerms['mode'], asker?: Asker): Promise<boolean> {
    if (mode !== undefined) return false; // a quorum has plain locks only
    return await this.forcedReleases.release(name, asker);
  }

  /** One member's message is enough, and the client reports each request once. */
  async requestRelease(request: AskRequest): Promise<boolean> {
    const cast = await askMembers(this.quorum, request.name, async (store) =>
      store.requestRelease?.(request),
    );
    return tally(cast, (isAsked) => isAsked === true) > 0;
  }

  async health(depth?: HealthDepth): Promise<StoreHealth> {
    const { charters } = this.quorum;
    const reports = await Promise.all(
      this.members.map(async ({ store }, index) => {
        // The charter may have changed.
        const seen = charters.look(index).then(() => charters.mayVote(index));
        const [report] = await Promise.all([store.health(depth), seen]);
        return report;
      }),
    );
    return quorumHealth(reports, charters);
  }

  onConnectionChange(listener: (change: ConnectionChange) => void): void {
    for (const { store } of this.members) store.onConnectionChange(listener);
  }

  async close(): Promise<void> {
    await Promise.all(this.quorum.releasers.map((releaser) => releaser.close()));
    await Promise.all(this.members.map(({ store }) => store.close()));
  }

  private async take<A extends { readonly granted: boolean }>(
    request: AcquireAllRequest,
    ask: (store: LockStore, leastToken: number | undefined) => Promise<A>,
    read: (answer: A) => AcquireAllReply,
  ): Promise<AcquireAllReply> {
    const { names, owner, leaseTime } = request;
    await this.admit(names, leaseTime);
    const holding = new Holding(leaseTime);
    for (const name of names) holding.fencingTokens.set(name, 0);
    this.quorum.holdings.set(owner, holding);
    const giveUp = (index: number, insist: boolean) => {
      const until = now() + leaseTime;
      for (const name of names)
        void this.quorum.releasers[index]?.release({ name, owner }, until, { insist });
    };
    try {
      const reply = await new MajorityAcquisition(this.quorum, request, holding, ask, read, giveUp).run();
      if (reply.granted) {
        names.forEach((name, n) => holding.fencingTokens.set(name, reply.fencingTokens[n] ?? 0));
      } else {
        this.quorum.holdings.delete(owner);
      }
      return reply;
    } catch (error) {
      this.quorum.holdings.delete(owner);
      throw error;
    }
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

  private subscriptionRefused(
    name: string | undefined,
    cast: readonly (NodeAnswer<unknown> | undefined)[],
  ): Error {
    return noMajority(name, outcomesOf(this.members, cast), { effect: 'refused' });
  }
}
