import { LockConfigError, LockUnavailableError } from '../../api/errors.js';
import type { LockStore } from '../../store/lock-store.js';
import { gather, tally, valuesOf } from './ballot.js';
import { forceRelease } from './forced-release.js';
import { releaseEverywhere, renewEverywhere } from './holds.js';
import { MajorityAcquisition } from './majority-acquisition.js';
import { majorityState } from './majority-state.js';
import type { Member } from './member.js';
import { askMajority } from './outcomes.js';
import { Quorum } from './quorum.js';
import { quorumHealth } from './quorum-health.js';
import { quorumListing } from './quorum-listing.js';
import { subscribeToLosses, subscribeToReleases } from './subscriptions.js';

const NO_QUEUES =
  'has no fair lock, read-write lock or semaphore: each node would have a queue in an order of its own, and a majority ' +
  'of queues is not a queue. Use connection for these';

type Port = { readonly [Part in keyof LockStore]-?: NonNullable<LockStore[Part]> };

/** Redlock: the holder of a lock is the owner to which a majority of several independent masters has granted it. */
export class QuorumLockStore implements LockStore {
  readonly noQueues = NO_QUEUES;
  private readonly quorum: Quorum;
  readonly leaseLimit: Quorum['leaseLimit'];
  readonly listing: Port['listing'];

  constructor(
    private readonly members: readonly Member[],
    leaseTime: number,
  ) {
    const quorum = new Quorum(members, leaseTime);
    this.quorum = quorum;
    this.leaseLimit = quorum.leaseLimit;
    this.listing = quorumListing(quorum);
    members.forEach(({ store }, index) => {
      store.onConnectionChange(({ connected }) => {
        if (!connected) return;
        // A quarantine begins with the first contact.
        void quorum.charters.mayVote(index).then(() => quorum.leaseLimit.repeat());
        quorum.releasers[index]?.hurry();
      });
    });
  }

  /** One member's answer is enough, because no lock depends on a label. */
  readonly labels: Port['labels'] = {
    keep: (client, label, time) =>
      Promise.any(this.members.map(({ store }) => store.labels.keep(client, label, time))),
    find: async (client) => {
      const answers = await gather(this.quorum, ({ store }) => store.labels.find(client));
      return valuesOf(answers).find((label) => label !== undefined);
    },
  };

  /** A note counts if a majority has it, because a member that has missed some notes reports waits that have ended. */
  readonly waits: Port['waits'] = {
    keep: async (...note) => {
      await askMajority(this.quorum, undefined, ({ waits }) => waits.keep(...note));
    },
    find: async (client) => {
      const answers = await askMajority(this.quorum, undefined, ({ waits }) => waits.find(client));
      return valuesOf(answers).find(
        (note) => tally(answers, (other) => other === note) >= this.quorum.needed,
      );
    },
    forget: async (client) => {
      await askMajority(this.quorum, undefined, ({ waits }) => waits.forget(client));
    },
  };

  readonly acquire: Port['acquire'] = async ({ name, owner, leaseTime, leastToken, queue }) => {
    if (queue !== undefined) throw new LockConfigError('nodes', NO_QUEUES, { key: name });
    const reply = await this.acquireAll({ names: [name], owner, leaseTime, leastToken });
    return reply.granted ? { granted: true, fencingToken: reply.fencingTokens[0] ?? 0 } : reply;
  };

  readonly acquireAll: Port['acquireAll'] = async (request) => {
    const { leaseLimit, charters } = this.quorum;
    if (request.leaseTime > leaseLimit.most || charters.conflict !== undefined) {
      const refusal = await leaseLimit.raise(request.names.join(','), request.leaseTime);
      if (refusal !== undefined) throw refusal;
    }
    return await new MajorityAcquisition(this.quorum, request).run();
  };

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
    majorityState(await askMajority(this.quorum, name, (store) => store.inspect(name)));

  /** A quorum has plain locks only, so there are none of a mode. */
  readonly forceRelease: Port['forceRelease'] = async (name, mode, asker) =>
    mode === undefined && (await forceRelease(this.quorum, name, asker));

  /** One member's message is enough, and the client reports each request once. */
  readonly requestRelease: Port['requestRelease'] = async (request) =>
    valuesOf(
      await askMajority(this.quorum, request.name, async (store) => store.requestRelease?.(request)),
    ).includes(true);

  readonly health: Port['health'] = async (depth) => {
    const asked = this.members.map(({ store }) => store.health(depth));
    const [, ...reports] = await Promise.all([this.quorum.charters.survey(false), ...asked]);
    return quorumHealth(reports, this.quorum);
  };

  readonly onConnectionChange: Port['onConnectionChange'] = (listener) => {
    for (const { store } of this.members) store.onConnectionChange(listener);
  };

  async close(): Promise<void> {
    await Promise.all(this.quorum.releasers.map((releaser) => releaser.close()));
    await Promise.all(this.members.map(({ store }) => store.close()));
  }
}
