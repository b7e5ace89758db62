import { randomUUID } from 'node:crypto';
import type {
  AcquireReply,
  AcquireRequest,
  LockStore,
  ReleaseRequest,
  Subscription,
} from '../stores/lock-store.js';
import { now } from './deadline.js';
import { GroupReleases } from './group-releases.js';
import { Tenure, type TenureOrigin, type Terms } from './tenure.js';
import { type Busy, POLL, type WaitRequest } from './waiting.js';
import { LocalQueue, type LocalQueueContext } from './local-queue.js';

/** After so many refusals in a row others have come first too often, and what is in the way is reserved. */
const PATIENCE = 10;
/**
 * And after so many ms of that it is given up to take them in one step, if `PATIENCE` is over. A lock that is held for
 * long, and not by one after the other, refuses a waiter no more than a few times.
 */
const LONGEST_REFUSAL = 500;

/**
 * Those of one process who want the same several plain locks of one place, all or none. They stand in a line as for
 * one lock; here its requests are translated, and it waits for whichever name is in the way. While it waits it holds
 * nothing, and it is never granted a part, so that no two of them can block each other. After PATIENCE refusals it has the
 * names reserved that are in its way, as Turn says: of the groups in each other's way, the one that has been refused for
 * longest gets what it wants one by one, whatever the others want. A name that is free is not kept from them.
 *
 * Reservations keep nothing from requests for a single lock, and names that are all in steady use by these are hardly ever
 * free at once. A group that has been refused for LONGEST_REFUSAL is told so, as `passedBy`; see Rounds.
 */
export class GroupQueue {
  private readonly queue: LocalQueue;
  private readonly asker = randomUUID();
  /** The names that were in the way the last time, and what hears of their release. */
  private inTheWay: readonly string[] = [];
  private releases: GroupReleases | undefined;
  /** What the store has granted last. */
  private origin: TenureOrigin | undefined;
  /** In a row, and since when. */
  private refusals = 0;
  private refusedSince = 0;
  private reserves = false;
  private reservesSince = 0;
  private fencingTokens: readonly number[] = [];

  constructor(
    readonly names: readonly string[],
    private readonly store: LockStore,
    /** What its members' releases are sent with. */
    terms: Pick<ReleaseRequest, 'queue'>,
    context: LocalQueueContext,
    onIdle: (line: GroupQueue) => void,
  ) {
    this.queue = new LocalQueue(
      { name: names.join(','), queue: undefined, beside: undefined },
      {
        ...context,
        store: this,
        releaser: {
          release: async ({ owner }, until, options) => {
            const releases = names.map((name) =>
              context.releaser.release({ ...terms, name, owner }, until, options),
            );
            return (await Promise.all(releases)).find((reply) => reply !== 'released') ?? 'released';
          },
        },
        // Only for the moment in which it is split into the tenures of its members.
        open: (line, terms, origin) => this.openForAMoment(line, terms, origin),
        look: () => Promise.resolve(),
      },
      () => {
        this.leaveTurns();
        onIdle(this);
      },
    );
  }

  get length(): number {
    return this.queue.length;
  }

  /**
   * As LocalQueue.join.
   * @returns for each name how it was granted, in order
   */
  async join(request: WaitRequest): Promise<readonly TenureOrigin[] | Busy> {
    const tenure = await this.queue.join(request);
    const { origin } = this;
    if ('busy' in tenure || origin === undefined) return { ...(tenure as Busy), name: this.inTheWay[0] };
    tenure.end();
    return this.fencingTokens.map((fencingToken) => ({ ...origin, fencingToken }));
  }

  sendAway(refused: (request: WaitRequest) => boolean): void {
    this.queue.sendAway(refused);
  }

  async acquire({ owner, leaseTime }: AcquireRequest): Promise<AcquireReply> {
    const { names, asker, releases } = this;
    if (this.refusals === 0) this.refusedSince = now();
    if (this.refusals >= PATIENCE && !this.reserves) this.reservesSince = now();
    this.reserves = this.refusals >= PATIENCE;
    const turn = { asker, refusedFor: this.reserves ? now() - this.refusedSince : undefined };
    releases?.asking();
    try {
      const reply = await this.store.acquireAll({ names, owner, leaseTime, turn });
      if (reply.granted) {
        this.refusals = 0;
        this.reserves = false;
        this.fencingTokens = reply.fencingTokens;
        return { granted: true, fencingToken: Math.max(...reply.fencingTokens) };
      }
      this.refusals++;
      this.inTheWay = [reply.name, ...(reply.others ?? [])];
      if (this.reserves && now() - this.reservesSince >= LONGEST_REFUSAL) {
        this.queue.refuseAll({ busy: true, holder: reply.holder, passedBy: true });
      }
      // The line believes that no release escapes it. One that may have done so is looked for soon.
      if (releases === undefined || releases.refused(this.inTheWay)) return reply;
      return { ...reply, retryAfter: Math.min(reply.retryAfter, POLL) };
    } finally {
      releases?.answered();
    }
  }

  async subscribe(_: string, onWake: () => void): Promise<Subscription> {
    const releases = new GroupReleases(this.store, this.inTheWay, onWake, () => {
      if (this.releases === releases) this.releases = undefined;
    });
    this.releases = releases;
    await releases.follow();
    return releases;
  }

  /** The last waiter has left without the locks. */
  private leaveTurns(): void {
    if (!this.reserves) return;
    this.reserves = false;
    // Without an answer the reservations end by themselves.
    this.store.leaveTurns?.(this.names, this.asker).catch(() => undefined);
  }

  private openForAMoment(line: LocalQueue, terms: Terms, origin: TenureOrigin): Tenure {
    this.origin = origin;
    return new Tenure(line.name, terms, origin, (tenure) => {
      line.ended(tenure);
    });
  }
}
