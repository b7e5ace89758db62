import {
  LockConfigError,
  LockUnavailableError,
  type NodeOutcome,
  asAnswer,
  type Found,
} from '../../lock.errors.js';
import type {
  AcquireAllReply,
  AcquireAllRequest,
  AcquireReply,
  AcquireRequest,
  HoldState,
  LockStore,
  QueueTerms,
  ReleaseReply,
  ReleaseRequest,
  RenewRequest,
  StoredLock,
  Subscription,
} from '../../port/lock-store.js';
import type { LossMessage } from '../../port/queue-messages.js';
import type { ConnectionChange, HealthDepth, StoreHealth } from '../../port/store-health.js';
import { Releaser } from '../../port/releaser.js';
import {
  MajorityAcquisition,
  type MajorityAcquisitionContext,
  marginOf,
  noMajority,
} from './majority-acquisition.js';
import { type NodeAnswer, decide, tally } from './ballot.js';
import { Contention } from './contention.js';
import { RestartQuarantine } from './restart-quarantine.js';
import { Hints } from './hints.js';
import { Holding, Holdings } from './holdings.js';
import { majorityState } from './majority-state.js';
import { type Member, type MemberStore, quorumOf } from './member.js';
import { mismatchAmong, whyNotHeld } from './not-held.js';
import { isTimeout, Presence } from './presence.js';
import { quorumHealth } from './quorum-health.js';
import { subscribeAll } from './subscribe-all.js';
import { WakeUp } from './wake-up.js';
import { now } from '../../lock.clock.js';

const NO_QUEUES =
  'has no fair lock, read-write lock or semaphore: each node would have a queue in an order of its own, and a majority ' +
  'of queues is not a queue. Use connection for these';

type RenewalCast = readonly (NodeAnswer<Found<HoldState>> | undefined)[];

/**
 * How many tokens local hand-offs may have given out beyond the token that the nodes know: a hand-off takes at least one µs.
 */
const HANDED_ON = 1_000_000;
/** The same where the token is ahead of the clocks, which lasts for seconds at most: a hand-off takes ten µs and more. */
const HANDED_ON_AHEAD = 100_000;

/**
 * Redlock: plain locks on several independent masters. A lock is held by the owner to which a majority of the masters has
 * granted it. Each member is a store of its own. All members are asked at once, and each answers in its own time.
 */
export class QuorumLockStore implements LockStore {
  readonly noQueues = NO_QUEUES;
  private readonly needed: number;
  private readonly restartQuarantine: RestartQuarantine;
  private readonly presence: Presence;
  private readonly contention = new Contention();
  private readonly context: MajorityAcquisitionContext;
  private readonly releasers: readonly Releaser[];
  private readonly holdings = new Holdings();

  /** @param leaseTime of the module, ms: a node that has restarted does not vote for this time */
  constructor(
    private readonly members: readonly Member[],
    private readonly leaseTime: number,
  ) {
    this.needed = quorumOf(members.length);
    this.restartQuarantine = new RestartQuarantine(members, leaseTime);
    this.presence = new Presence(members);
    const { restartQuarantine: electorate, presence, contention } = this;
    this.context = { members, leaseTime, restartQuarantine: electorate, presence, contention };
    this.releasers = members.map(({ store }) => new Releaser(store));
    members.forEach(({ store }, index) => {
      store.onConnectionChange(({ connected }) => {
        if (!connected) return;
        // A member that has just started needs its note before a process that does not know the quorum looks at it.
        void electorate.mayVote(index);
        this.releasers[index]?.hurry();
      });
    });
  }

  async acquire({ name, queue, ...request }: AcquireRequest): Promise<AcquireReply> {
    if (queue !== undefined) throw new LockConfigError('nodes', NO_QUEUES, { key: name });
    const reply = await this.take({ ...request, names: [name] }, async (store, leastToken) => {
      const answer = await store.acquire({ ...request, name, leastToken });
      return answer.granted ? { granted: true, fencingTokens: [answer.fencingToken] } : { ...answer, name };
    });
    return reply.granted ? { granted: true, fencingToken: reply.fencingTokens[0] ?? 0 } : reply;
  }

  async acquireAll(request: AcquireAllRequest): Promise<AcquireAllReply> {
    return await this.take(request, (store, leastToken) => store.acquireAll({ ...request, leastToken }));
  }

  locationOf(name: string): string {
    return this.members.map(({ store }) => store.locationOf(name)).join(' ');
  }

  outageOf(name: string): LockUnavailableError | undefined {
    const down = this.members.filter(({ isDown }) => isDown);
    if (this.members.length - down.length >= this.needed) return undefined;
    const outcomes = down.map(({ node, store }) => {
      return { node, outcome: 'error', error: store.outageOf?.(name)?.cause } as const;
    });
    return new LockUnavailableError(name, { cause: outcomes[0]?.error, effect: 'refused', outcomes });
  }

  renew(requests: readonly RenewRequest[]): readonly Promise<HoldState>[] {
    for (const { leaseTime } of requests) this.restartQuarantine.learn(leaseTime);
    const answers = this.members.map(({ store }) => store.renew(requests));
    answers.forEach(([first], index) => {
      // The requests to one member are sent together, so one of the answers shows that the member answers.
      if (first !== undefined) void this.presence.observe(index, first);
    });
    return requests.map(async (request, n) => {
      const states = answers.map((ofMember) => (ofMember[n] ?? Promise.resolve('deleted')).catch(asAnswer));
      const decision = await decide(states, (cast) => this.countRenewals(cast));
      if ('cast' in decision) {
        throw noMajority(request.name, this.outcomesOf(decision.cast), { effect: 'unknown' });
      }
      if (decision.state === 'held') this.topUp(request, states);
      else this.giveUpRest(request);
      if (typeof decision.state !== 'string') throw decision.state;
      return decision.state;
    });
  }

  async release(request: ReleaseRequest): Promise<ReleaseReply> {
    const { name, owner } = request;
    const holding = this.holdings.get(owner);
    const fencingToken = request.fencingToken ?? holding?.fencingTokens.get(name);
    const release = { ...request, fencingToken };
    const until = Math.max(now() + this.leaseTime, holding?.until ?? 0);
    holding?.released.add(name);
    const answers = this.members.map(({ store }, index) =>
      holding?.mayBeHeldBy(index) === false
        ? Promise.resolve<ReleaseReply>('deleted')
        : this.presence.observe(index, store.release(release)).catch(asAnswer),
    );
    const decision = await decide(answers, (cast) => {
      if (tally(cast, (reply) => reply === 'released') >= this.needed) return 'released';
      if (tally(cast, (reply) => reply !== 'released') > this.members.length - this.needed)
        return whyNotHeld(cast);
      return cast.includes(undefined) ? undefined : { cast };
    });
    if (typeof decision === 'object' && 'cast' in decision) {
      throw noMajority(name, this.outcomesOf(decision.cast), { effect: 'unknown' });
    }
    if (holding?.released.size === holding?.fencingTokens.size) this.holdings.delete(owner);
    // The lock is free. A member that has not answered, or that an older request may still reach, gets the release until the
    // lease has ended.
    answers.forEach((answer, index) => {
      const repeat = () => {
        void this.releasers[index]?.release(release, until, { insist: holding?.isUnsureOf(index) === true });
      };
      answer.then(() => {
        if (holding?.isUnsureOf(index) === true) repeat();
      }, repeat);
    });
    if (typeof decision !== 'string') throw decision;
    return decision;
  }

  async subscribeToReleases(name: string, onWake: () => void): Promise<Subscription> {
    const { members, presence, contention } = this;
    const wakeUp = new WakeUp(members.length, () => {
      contention.woken(name);
      // An even number of members is easily split in two halves.
      if (presence.present().length < members.length) contention.expect(name);
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
    const hints = new Hints(this.members.length, (owner) => {
      onMessage({ type: 'lost', owner });
    });
    const open = (store: MemberStore, index: number, isOpen: () => boolean) =>
      store.queues.subscribe(client, (message) => {
        if (!isOpen()) return;
        if (message.type === 'lost') hints.add(index, message.owner);
        else if (message.type === 'missed') onMessage(message);
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
    const states = await this.askAll(name, (store) => store.inspect(name));
    return majorityState(states);
  }

  async forceRelease(name: string, mode?: QueueTerms['mode']): Promise<boolean> {
    if (mode !== undefined) return false; // a quorum has plain locks only
    const states = await this.askAll(name, (store) => store.inspect(name));
    const known = majorityState(states);
    const fencingToken = this.tokenBeyond(known);
    await this.tellToken(name, states, fencingToken);
    // A silent member carries the command out when it runs again, and another owner may hold the lock by then. So this
    // member is told to release the hold of the present owner instead, for as long as that hold lasts.
    const isHeard = (index: number) => states[index] !== undefined && 'value' in states[index];
    for (const { owner, remainingTime } of known?.holders ?? []) {
      const until = now() + Math.max(remainingTime, this.leaseTime);
      this.releasers.forEach((releaser, index) => {
        if (!isHeard(index)) void releaser.release({ name, owner, fencingToken }, until);
      });
    }
    const released = await this.askAll(name, (store) => store.forceRelease(name), isHeard);
    return tally(released, (held) => held) > 0;
  }

  async health(depth?: HealthDepth): Promise<StoreHealth> {
    const reports = await Promise.all(
      this.members.map(async ({ store }, index) => {
        const [report] = await Promise.all([store.health(depth), this.restartQuarantine.mayVote(index)]);
        return report;
      }),
    );
    return quorumHealth(reports, (index) => this.restartQuarantine.quarantineOf(index));
  }

  onConnectionChange(listener: (change: ConnectionChange) => void): void {
    for (const { store } of this.members) store.onConnectionChange(listener);
  }

  async close(): Promise<void> {
    await Promise.all(this.releasers.map((releaser) => releaser.close()));
    await Promise.all(this.members.map(({ store }) => store.close()));
  }

  private async take(
    request: AcquireAllRequest,
    ask: (store: LockStore, leastToken: number | undefined) => Promise<AcquireAllReply>,
  ): Promise<AcquireAllReply> {
    const { names, owner, leaseTime } = request;
    this.restartQuarantine.learn(leaseTime);
    const holding = new Holding(leaseTime);
    for (const name of names) holding.fencingTokens.set(name, 0);
    this.holdings.set(owner, holding);
    const giveUp = (index: number, insist: boolean) => {
      const until = now() + leaseTime;
      for (const name of names) void this.releasers[index]?.release({ name, owner }, until, { insist });
    };
    try {
      const reply = await new MajorityAcquisition(this.context, request, holding, ask, giveUp).run();
      if (reply.granted) {
        names.forEach((name, n) => holding.fencingTokens.set(name, reply.fencingTokens[n] ?? 0));
      } else {
        this.holdings.delete(owner);
      }
      return reply;
    } catch (error) {
      this.holdings.delete(owner);
      throw error;
    }
  }

  /** Only members that still held the lock count. A member that has not answered says nothing. */
  private countRenewals(cast: RenewalCast): { state: Found<HoldState> } | { cast: RenewalCast } | undefined {
    if (tally(cast, (state) => state === 'held') >= this.needed) return { state: 'held' };
    if (tally(cast, (state) => state !== 'held') > this.members.length - this.needed) {
      return { state: whyNotHeld(cast) };
    }
    return cast.includes(undefined) ? undefined : { cast };
  }

  /**
   * A majority holds the lock. A member that does not, because it was unreachable or has restarted, is asked to take it.
   */
  private topUp(
    { name, owner, leaseTime }: RenewRequest,
    states: readonly Promise<Found<HoldState>>[],
  ): void {
    const holding = this.holdings.get(owner);
    if (holding === undefined) return;
    holding.prolong(leaseTime);
    // After a renewal that only asks for the state, a member holds the lock for as long as the others do, and no longer.
    const left = Math.floor(holding.until - now());
    if (left <= 0) return;
    states.forEach((answer, index) => {
      answer.then(
        async (state) => {
          if (state !== 'deleted' || holding.released.has(name)) return;
          const leastToken = holding.fencingTokens.get(name);
          holding.ask(index);
          await this.members[index]?.store.acquire({ name, owner, leaseTime: left, leastToken }).then(
            () => {
              holding.answered(index);
            },
            () => undefined, // a later release is going to be repeated
          );
        },
        () => undefined,
      );
    });
  }

  /**
   * The lock is lost, because too few members still hold it. These members would keep it for a whole lease, and for no
   * owner.
   */
  private giveUpRest({ name, owner, leaseTime }: RenewRequest): void {
    const holding = this.holdings.get(owner);
    holding?.released.add(name);
    const fencingToken = holding?.fencingTokens.get(name);
    const until = Math.max(now() + leaseTime, holding?.until ?? 0);
    this.releasers.forEach((releaser, index) => {
      // A top-up that is still under way may arrive after the release.
      const insist = holding?.isUnsureOf(index) === true;
      void releaser.release({ name, owner, fencingToken }, until, { insist });
    });
  }

  /**
   * A token that is not less than any token that was given out under a hold. A silent member may have given a greater token
   * than the other members know, by the margin that acquisitions leave between them. But tokens are times of the members'
   * clocks, which lie within the same margin, and a majority knows of any token beyond these. So a lock that is taken away
   * again and again does not get further and further ahead of the clocks: a member that has restarted has nothing but its
   * clock.
   */
  private tokenBeyond(known: StoredLock | null): number | undefined {
    const last = known?.fencingToken;
    if (last === undefined) return undefined;
    const margin = marginOf(this.leaseTime);
    const latest = (this.restartQuarantine.time ?? Infinity) + margin;
    return Math.ceil(Math.max(last + HANDED_ON_AHEAD, Math.min(last + margin + HANDED_ON, latest)));
  }

  /** Before a lock is taken away, every member that holds it learns such a token, so that the next token is greater. */
  private async tellToken(
    name: string,
    states: readonly (NodeAnswer<StoredLock | null> | undefined)[],
    leastToken: number | undefined,
  ): Promise<void> {
    if (leastToken === undefined) return;
    const telling = states.map(async (answer, index) => {
      const [holder] = answer !== undefined && 'value' in answer ? (answer.value?.holders ?? []) : [];
      const member = this.members[index];
      if (member === undefined || holder === undefined || holder.remainingTime === Infinity) return;
      const leaseTime = Math.max(1, holder.remainingTime);
      const asked = member.store.acquire({ name, owner: holder.owner, leaseTime, leastToken });
      await this.presence.unlessAbsent(index, this.presence.observe(index, asked));
    });
    await Promise.allSettled(telling);
  }

  /**
   * Waits for all members that are asked. Once a majority has answered, it waits only for the members that are not silent.
   * @throws LockUnavailableError when no majority answers
   */
  private async askAll<A>(
    name: string,
    ask: (store: LockStore) => Promise<A>,
    isAsked: (index: number) => boolean = () => true,
  ): Promise<readonly (NodeAnswer<A> | undefined)[]> {
    type Cast = readonly (NodeAnswer<A> | undefined)[];
    const { members, presence, needed } = this;
    const unasked = new Promise<never>(() => undefined);
    const answers = members.map(({ store }, index) =>
      isAsked(index) ? presence.observe(index, ask(store)) : unasked,
    );
    const all = (cast: Cast) =>
      cast.every((answer, index) => answer !== undefined || !isAsked(index)) ? cast : undefined;
    const without = (cast: Cast) => (tally(cast) >= needed ? cast : undefined);
    const cast = await decide(answers, all, { presence, without });
    if (tally(cast) >= needed) return cast;
    throw mismatchAmong(cast) ?? noMajority(name, this.outcomesOf(cast), { effect: 'unknown' });
  }

  private subscriptionRefused(
    name: string | undefined,
    cast: readonly (NodeAnswer<unknown> | undefined)[],
  ): Error {
    return noMajority(name, this.outcomesOf(cast), { effect: 'refused' });
  }

  private outcomesOf(cast: readonly (NodeAnswer<unknown> | undefined)[]): NodeOutcome[] {
    return this.members.map(({ node }, index) => {
      const answer = cast[index];
      if (answer === undefined) return { node, outcome: 'timeout' };
      // A member that does not hold the lock for the owner answers with one of these.
      const refused = 'value' in answer && ['taken', 'deleted'].includes(answer.value as string);
      if ('value' in answer) return { node, outcome: refused ? 'taken' : 'granted' };
      return { node, outcome: isTimeout(answer.error) ? 'timeout' : 'error', error: answer.error };
    });
  }
}
