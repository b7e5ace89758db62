import { LockConfigError, type NodeOutcome } from '../../lock.errors.js';
import type {
  AcquireAllReply,
  AcquireAllRequest,
  AcquireReply,
  AcquireRequest,
  ConnectionChange,
  HoldState,
  LockStore,
  ReleaseRequest,
  RenewRequest,
  StoredLock,
  StoreHealth,
  Subscription,
} from '../lock-store.js';
import { Releaser } from '../releaser.js';
import { Acquisition, isTimeout, noMajority } from './acquisition.js';
import { type Answer, decide, tally } from './ballot.js';
import { Electorate } from './electorate.js';
import { Holding, Holdings } from './holdings.js';
import { majorityState } from './majority-state.js';
import { type Member, quorumOf } from './member.js';
import { quorumHealth } from './quorum-health.js';
import { WakeUp } from './wake-up.js';

const NO_QUEUES =
  'has no fair lock, read-write lock or semaphore: each node would have a queue in an order of its own, and a majority ' +
  'of queues is not a queue. Use connection for these';

/** Beyond the token that the nodes know, those that local hand-offs have given out: one has to take a µs at least. */
const HANDED_ON = 1_000_000;

/**
 * Redlock: plain locks on several independent masters, held by whoever a majority of them has granted it to. Each
 * member is a store of its own; all are asked at once, and each answers in a time of its own.
 */
export class QuorumLockStore implements LockStore {
  readonly noQueues = NO_QUEUES;
  private readonly needed: number;
  private readonly electorate: Electorate;
  private readonly releasers: readonly Releaser[];
  private readonly holdings = new Holdings();

  /** @param leaseTime of the module, ms: a node that has restarted does not vote for so long */
  constructor(
    private readonly members: readonly Member[],
    private readonly leaseTime: number,
  ) {
    this.needed = quorumOf(members.length);
    this.electorate = new Electorate(members, leaseTime);
    this.releasers = members.map(({ store }) => new Releaser(store));
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

  placeOf(name: string): string {
    return this.members.map(({ store }) => store.placeOf(name)).join(' ');
  }

  renew(requests: readonly RenewRequest[]): readonly Promise<HoldState>[] {
    for (const { leaseTime } of requests) this.electorate.learn(leaseTime);
    const answers = this.members.map(({ store }) => store.renew(requests));
    return requests.map(async (request, n) => {
      const states = answers.map((ofMember) => ofMember[n] ?? Promise.resolve<HoldState>('deleted'));
      const decision = await decide(states, (cast) => this.countRenewals(cast));
      if ('cast' in decision) {
        throw noMajority(request.name, this.outcomesOf(decision.cast), { effect: 'unknown' });
      }
      if (decision.state === 'held') this.topUp(request, states);
      else this.giveUpRest(request);
      return decision.state;
    });
  }

  async release(request: ReleaseRequest): Promise<boolean> {
    const { name, owner } = request;
    const holding = this.holdings.get(owner);
    const fencingToken = request.fencingToken ?? holding?.fencingTokens.get(name);
    const release = { ...request, fencingToken };
    const until = Math.max(performance.now() + this.leaseTime, holding?.until ?? 0);
    holding?.released.add(name);
    const answers = this.members.map(({ store }) => store.release(release));
    const decision = await decide(answers, (cast) => {
      if (tally(cast, (held) => held) >= this.needed) return { held: true };
      if (tally(cast, (held) => !held) > this.members.length - this.needed) return { held: false };
      return cast.includes(undefined) ? undefined : { cast };
    });
    if (decision.cast !== undefined) {
      throw noMajority(name, this.outcomesOf(decision.cast), { effect: 'unknown' });
    }
    if (holding?.released.size === holding?.fencingTokens.size) this.holdings.delete(owner);
    // It is free. Who has not heard of that, or may hear of an older request yet, is told until the lease has run out.
    answers.forEach((answer, index) => {
      const repeat = () => {
        void this.releasers[index]?.release(release, until, { insist: holding?.unsure.has(index) === true });
      };
      answer.then(() => {
        if (holding?.unsure.has(index) === true) repeat();
      }, repeat);
    });
    return decision.held;
  }

  async subscribe(name: string, onWake: () => void): Promise<Subscription> {
    const { members, needed } = this;
    const wakeUp = new WakeUp(members.length, onWake);
    const subscriptions = new Set<Subscription>();
    let closed = false;
    const close = () => {
      closed = true;
      wakeUp.close();
      for (const subscription of subscriptions) subscription.close();
    };
    const subscribing = members.map(async ({ store }, index) => {
      const subscription = await store.subscribe(name, () => {
        if (!closed) wakeUp.hear(index);
      });
      if (closed) subscription.close();
      else subscriptions.add(subscription);
    });
    // A release reaches a majority, and so does this: they have a node in common.
    const decision = await decide(subscribing, (cast) => {
      if (tally(cast) >= needed) return { cast: undefined };
      return cast.includes(undefined) ? undefined : { cast };
    });
    if (decision.cast !== undefined) {
      close();
      throw noMajority(name, this.outcomesOf(decision.cast), { effect: 'refused' });
    }
    return {
      get active() {
        return [...subscriptions].filter(({ active }) => active).length >= needed;
      },
      close,
    };
  }

  listen(): Promise<Subscription> {
    return Promise.reject(new LockConfigError('nodes', NO_QUEUES));
  }

  async inspect(name: string): Promise<StoredLock | null> {
    const states = await this.askAll(name, (store) => store.inspect(name));
    return majorityState(states);
  }

  async forceRelease(name: string): Promise<boolean> {
    await this.tellToken(name);
    const released = await this.askAll(name, (store) => store.forceRelease(name));
    return tally(released, (held) => held) > 0;
  }

  async health(): Promise<StoreHealth> {
    const reports = await Promise.all(
      this.members.map(async ({ store }, index) => {
        const [report] = await Promise.all([store.health(), this.electorate.mayVote(index)]);
        return report;
      }),
    );
    return quorumHealth(reports, (index) => this.electorate.quarantineOf(index));
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
    this.electorate.learn(leaseTime);
    const holding = new Holding(this.members.length, leaseTime);
    for (const name of names) holding.fencingTokens.set(name, 0);
    this.holdings.set(owner, holding);
    const giveUp = (index: number, insist: boolean) => {
      const until = performance.now() + leaseTime;
      for (const name of names) void this.releasers[index]?.release({ name, owner }, until, { insist });
    };
    try {
      const reply = await new Acquisition(this.members, this.electorate, request, holding, ask, giveUp).run();
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

  /** Only who still held it counts; who has not answered says nothing. */
  private countRenewals(
    cast: readonly (Answer<HoldState> | undefined)[],
  ): { state: HoldState } | { cast: readonly (Answer<HoldState> | undefined)[] } | undefined {
    if (tally(cast, (state) => state === 'held') >= this.needed) return { state: 'held' };
    if (tally(cast, (state) => state !== 'held') > this.members.length - this.needed) {
      return { state: tally(cast, (state) => state === 'taken') > 0 ? 'taken' : 'deleted' };
    }
    return cast.includes(undefined) ? undefined : { cast };
  }

  /** A majority holds it. Members that do not, because they were out of reach or have restarted, are asked to. */
  private topUp({ name, owner, leaseTime }: RenewRequest, states: readonly Promise<HoldState>[]): void {
    const holding = this.holdings.get(owner);
    if (holding === undefined) return;
    holding.prolong(leaseTime);
    states.forEach((answer, index) => {
      answer.then(
        async (state) => {
          if (state !== 'deleted' || holding.released.has(name)) return;
          const leastToken = holding.fencingTokens.get(name);
          holding.unsure.add(index);
          const reply = this.members[index]?.store.acquire({ name, owner, leaseTime, leastToken });
          await reply?.then(
            () => holding.unsure.delete(index),
            () => undefined, // the release is going to insist
          );
        },
        () => undefined,
      );
    });
  }

  /** It is lost, because too few still hold it. Those who do would keep it for a whole lease, and for nobody. */
  private giveUpRest({ name, owner, leaseTime }: RenewRequest): void {
    const holding = this.holdings.get(owner);
    holding?.released.add(name);
    const fencingToken = holding?.fencingTokens.get(name);
    const until = performance.now() + leaseTime;
    this.releasers.forEach((releaser) => void releaser.release({ name, owner, fencingToken }, until));
  }

  /** Before a lock is taken away: every member that has it learns the last token, so that the next one is greater. */
  private async tellToken(name: string): Promise<void> {
    const states = await this.askAll(name, (store) => store.inspect(name));
    const known = majorityState(states)?.fencingToken;
    if (known === undefined) return;
    const last = known + HANDED_ON;
    const telling = states.map(async (answer, index) => {
      const [holder] = answer !== undefined && 'value' in answer ? (answer.value?.holders ?? []) : [];
      if (holder === undefined || holder.remainingTime === Infinity) return;
      const request = { name, owner: holder.owner, leaseTime: Math.max(1, holder.remainingTime) };
      await this.members[index]?.store.acquire({ ...request, leastToken: last });
    });
    await Promise.allSettled(telling);
  }

  /** @throws LockUnavailableError when no majority answers */
  private async askAll<A>(
    name: string,
    ask: (store: LockStore) => Promise<A>,
  ): Promise<readonly (Answer<A> | undefined)[]> {
    const cast = await decide(
      this.members.map(({ store }) => ask(store)),
      (answers) => (answers.includes(undefined) ? undefined : answers),
    );
    if (tally(cast) >= this.needed) return cast;
    throw noMajority(name, this.outcomesOf(cast), { effect: 'unknown' });
  }

  private outcomesOf(cast: readonly (Answer<unknown> | undefined)[]): NodeOutcome[] {
    return this.members.map(({ node }, index) => {
      const answer = cast[index];
      if (answer === undefined) return { node, outcome: 'timeout' };
      // Who does not hold it for the owner says so with one of these.
      const refused =
        'value' in answer && ['taken', 'deleted', false].includes(answer.value as string | boolean);
      if ('value' in answer) return { node, outcome: refused ? 'taken' : 'granted' };
      return { node, outcome: isTimeout(answer.error) ? 'timeout' : 'error', error: answer.error };
    });
  }
}
