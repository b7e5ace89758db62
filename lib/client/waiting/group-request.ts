import type {
  AcquireReply,
  AcquireRequest,
  LockStore,
  ReleaseRequest,
  Subscription,
} from '../../store/lock-store.js';
import { LocalQueue } from './local-queue.js';
import type { QueueClient } from './queue-client.js';
import { Tenure, type TenureOrigin } from '../holding/tenure.js';
import { type Busy, refusedWith, type WaitRequest } from './waiting.js';

/**
 * A caller's request for several plain locks of one location, all or none. A busy lock is an answer, and is not waited
 * for; see Attempt. The wait time bounds the time without an answer of the store.
 *
 * A local queue sends the request, so lost and late replies, aborts and shutdowns are handled as for one lock. For that
 * queue, the names are one lock. This class translates its requests and releases.
 */
export class GroupRequest {
  private readonly queue: LocalQueue;
  private nameInTheWay: string | undefined;
  private fencingTokens: readonly number[] = [];

  constructor(
    readonly names: readonly string[],
    private readonly store: LockStore,
    /** The terms of the members' releases. */
    private readonly terms: Pick<ReleaseRequest, 'queue'>,
    client: QueueClient,
    onIdle: (request: GroupRequest) => void,
  ) {
    this.queue = new LocalQueue(
      { name: names.join(','), queue: undefined, ownWriteHold: undefined },
      {
        ...client,
        store: this,
        releaser: {
          release: ({ owner }, until, options) => {
            for (const name of names) client.releaser.release({ ...terms, name, owner }, until, options);
          },
        },
        // A temporary tenure, until it is split into the tenures of the members.
        open: (queue, terms, origin) =>
          new Tenure(queue.name, terms, origin, (tenure) => {
            queue.ended(tenure);
          }),
        look: () => Promise.resolve(),
      },
      () => {
        onIdle(this);
      },
    );
  }

  get holder(): string | undefined {
    return this.queue.holder;
  }

  get length(): number {
    return this.queue.length;
  }

  get waiting(): number {
    return this.queue.waiting;
  }

  get waitingSince(): number | undefined {
    return this.queue.waitingSince;
  }

  /**
   * @returns the grant of each name, in order; or a busy name
   * @throws as LocalQueue.join
   */
  async send(request: WaitRequest): Promise<readonly TenureOrigin[] | Busy> {
    const tenure = await this.queue.join(request);
    if ('busy' in tenure) return { ...tenure, name: this.nameInTheWay };
    const { owner, grantedAt, granted: leaseTime } = tenure;
    tenure.end();
    const { queue } = this.terms;
    return this.fencingTokens.map((fencingToken) => ({ owner, grantedAt, leaseTime, fencingToken, queue }));
  }

  sendAway(refused: (request: WaitRequest) => boolean): void {
    this.queue.sendAway(refused);
  }

  async acquire({ owner, leaseTime }: AcquireRequest): Promise<AcquireReply> {
    const { names } = this;
    const reply = await this.store.acquireAll({ names, owner, leaseTime });
    if (reply.granted) {
      this.fencingTokens = reply.fencingTokens;
      return { granted: true, fencingToken: Math.max(...reply.fencingTokens) };
    }
    this.nameInTheWay = reply.name;
    this.queue.refuseAll(refusedWith(reply));
    return reply;
  }

  /** A refusal ends the request, so it waits for no release. */
  subscribeToReleases(): Promise<Subscription> {
    return Promise.resolve({ active: false, close: () => undefined });
  }
}
