import { LockConfigError, LockUnavailableError } from '../../api/errors.js';
import type {
  AcquireAllReply,
  AcquireAllRequest,
  AcquireReply,
  AcquireRequest,
  LockStore,
} from '../../store/lock-store.js';
import type { HealthDepth, StoreHealth } from '../../store/store-health.js';
import { tally } from './ballot.js';
import { forceRelease } from './forced-release.js';
import { Hold } from './holds.js';
import { MajorityAcquisition } from './majority-acquisition.js';
import { releaseEverywhere } from './majority-release.js';
import { renewEverywhere } from './majority-renewals.js';
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

type Port = Required<LockStore>;

/**
 * Redlock: plain locks on several independent masters. The holder of a lock is the owner to which a majority of the
 * masters has granted it. Each member has its own store. The members are asked in parallel, and each answers in its own
 * time.
 */
export class QuorumLockStore implements LockStore {
  readonly noQueues = NO_QUEUES;
  private readonly quorum: Quorum;
  readonly leaseLimit: Quorum['leaseLimit'];
  readonly labels;
  readonly waits;
  readonly listing;

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
    members.forEach(({ store }, index) => {
      store.onConnectionChange(({ connected }) => {
        if (!connected) return;
        // A restarted member's waiting time counts from its first contact, and all members learn a longer lease time
        // before a lock needs it.
        void quorum.charters.mayVote(index).then(() => quorum.leaseLimit.raise(undefined, leaseTime));
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
    const { holds, leaseLimit, charters } = this.quorum;
    const refusal =
      leaseTime > leaseLimit.most || charters.conflict !== undefined
        ? await leaseLimit.raise(names.join(','), leaseTime)
        : undefined;
    if (refusal !== undefined) throw refusal;
    const hold = new Hold(names, leaseTime);
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

  readonly renew: Port['renew'] = (requests) => renewEverywhere(this.quorum, requests);

  readonly release: Port['release'] = (request) => releaseEverywhere(this.quorum, request);

  readonly locationOf: Port['locationOf'] = (name) =>
    this.members.map(({ store }) => store.locationOf(name)).join(' ');

  readonly outageOf: Port['outageOf'] = (name) => {
    const down = this.members.filter(({ isDown }) => isDown);
    if (this.members.length - down.length >= this.quorum.needed) return undefined;
    const outcomes = down.map(({ node, store }) => {
      return { node, outcome: 'error', error: store.outageOf?.(name)?.cause } as const;
    });
    return new LockUnavailableError(name, { cause: outcomes[0]?.error, effect: 'refused', outcomes });
  };

  readonly subscribeToReleases: Port['subscribeToReleases'] = (name, onWake) =>
    subscribeToReleases(this.quorum, name, onWake);

  readonly subscribeToLosses: Port['subscribeToLosses'] = (client, onMessage) =>
    subscribeToLosses(this.quorum, client, onMessage);

  readonly inspect: Port['inspect'] = async (name) =>
    majorityState(await askMajority(this.quorum, name, ({ store }) => store.inspect(name)));

  /** A quorum has plain locks only, so there are none of a mode. */
  readonly forceRelease: Port['forceRelease'] = async (name, mode, asker) =>
    mode === undefined && (await forceRelease(this.quorum, name, asker));

  /** One member's message is enough, and the client reports each request once. */
  readonly requestRelease: Port['requestRelease'] = async (request) => {
    const ask = async ({ store }: Member) => (await store.requestRelease?.(request)) === true;
    return tally(await askMajority(this.quorum, request.name, ask), (isAsked) => isAsked) > 0;
  };

  async health(depth?: HealthDepth): Promise<StoreHealth> {
    const { charters } = this.quorum;
    // The charter may have changed.
    const [reports] = await Promise.all([
      Promise.all(this.members.map(({ store }) => store.health(depth))),
      charters.survey(true),
    ]);
    return quorumHealth(reports, charters);
  }

  readonly onConnectionChange: Port['onConnectionChange'] = (listener) => {
    for (const { store } of this.members) store.onConnectionChange(listener);
  };

  async close(): Promise<void> {
    await Promise.all(this.quorum.releasers.map((releaser) => releaser.close()));
    await Promise.all(this.members.map(({ store }) => store.close()));
  }
}
