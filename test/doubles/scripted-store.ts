import { MemoryLockStore } from '../../lib/index.js';
import type {
  AcquireAllReply,
  AcquireAllRequest,
  AcquireReply,
  AcquireRequest,
  HandOverReply,
  HoldState,
  LossMessage,
  NextOwner,
  QueueMessage,
  ReleaseReply,
  ReleaseRequest,
  RenewRequest,
  StoreQueues,
  Subscription,
} from '../../lib/store/index.js';

/** A memory store whose operations are counted, and can be held back or made to fail: for what is about timing only. */
export class ScriptedStore extends MemoryLockStore {
  readonly calls = { acquire: 0, acquireAll: 0, renew: 0, release: 0, handOver: 0, subscribe: 0 };
  /** False as in a quorum: releases wake all that listen. To be set before a service is made. */
  hasQueues = true;
  readonly released: ReleaseRequest[] = [];
  /** Runs before each acquisition reaches the store. */
  beforeAcquire: () => Promise<void> | void = () => undefined;
  /** Runs after it, before the reply goes back: what a lost reply or a slow network does. */
  afterAcquire: () => Promise<void> | void = () => undefined;
  onRenew: () => Promise<void> | void = () => undefined;
  onRelease: () => Promise<void> | void = () => undefined;

  override async acquire(request: AcquireRequest): Promise<AcquireReply> {
    this.calls.acquire++;
    await this.beforeAcquire();
    const reply = await super.acquire(request);
    await this.afterAcquire();
    return reply;
  }

  override async acquireAll(request: AcquireAllRequest): Promise<AcquireAllReply> {
    this.calls.acquireAll++;
    await this.beforeAcquire();
    const reply = await super.acquireAll(request);
    await this.afterAcquire();
    return reply;
  }

  override renew(requests: readonly RenewRequest[]): readonly Promise<HoldState>[] {
    this.calls.renew++;
    const gate = Promise.resolve(this.onRenew());
    return requests.map(async (request) => {
      await gate;
      return (await super.renew([request])[0])!;
    });
  }

  override async release(request: ReleaseRequest): Promise<ReleaseReply> {
    this.calls.release++;
    this.released.push(request);
    await this.onRelease();
    return super.release(request);
  }

  override get queues(): StoreQueues {
    if (!this.hasQueues) return undefined as unknown as StoreQueues;
    return {
      subscribe: (client, onMessage) => this.subscribeToQueue(client, onMessage),
      handOver: (request, next) => this.handOver(request, next),
    };
  }

  subscribeToLosses(client: string, onMessage: (message: LossMessage) => void): Promise<Subscription> {
    return this.subscribeToQueue(client, (message) => {
      if (message.type === 'lost' || message.type === 'asked' || message.type === 'missed')
        onMessage(message);
    });
  }

  subscribeToQueue(client: string, onMessage: (message: QueueMessage) => void): Promise<Subscription> {
    return super.queues.subscribe(client, onMessage);
  }

  async handOver(request: ReleaseRequest, next: NextOwner): Promise<HandOverReply> {
    this.calls.handOver++;
    this.released.push(request);
    await this.onRelease();
    return await super.queues.handOver!(request, next);
  }

  override subscribeToReleases(name: string, onWake: () => void) {
    this.calls.subscribe++;
    return super.subscribeToReleases(name, onWake);
  }
}
