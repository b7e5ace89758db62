import assert from './assert.js';
import type { NextOwner, ReleaseRequest } from '../../store/lock-store.js';
import type { QueueMessage } from '../../store/queue-messages.js';
import type { hear } from './hearing.js';
import { LEASE, type Stage, tokenOf, until } from './stage.js';

/** The terms of a request for a plain lock to a store with queues. */
export const PLAIN = { kind: 'lock', mode: 'exclusive', capacity: 1 } as const;

type Heard = Awaited<ReturnType<typeof hear>>;
type Grant = Extract<QueueMessage, { type: 'granted' }>;

/** One plain lock of a store with queues, and what its owners do. */
export class PlainLockStage {
  readonly name: string;

  constructor(
    private readonly stage: Stage,
    name = stage.freshName(),
  ) {
    this.name = name;
  }

  /** Takes the lock if it is free, and adds no entry. */
  ask(owner: string, leaseTime = LEASE) {
    const { name } = this;
    const queue = { ...PLAIN, entry: undefined, ownWriteHold: undefined };
    return this.stage.store.acquire({ name, owner, leaseTime, queue });
  }

  async take(owner: string, leaseTime = LEASE): Promise<number> {
    return tokenOf(await this.ask(owner, leaseTime));
  }

  /** Takes the lock, or an entry in its queue. */
  stand(owner: string, arrival?: number, leaseTime = LEASE) {
    const { name } = this;
    const queue = { ...PLAIN, entry: { arrival }, ownWriteHold: undefined };
    return this.stage.other.acquire({ name, owner, leaseTime, queue });
  }

  async stands(owner: string, arrival?: number, leaseTime = LEASE) {
    const reply = await this.stand(owner, arrival, leaseTime);
    assert.ok(!reply.granted, `${owner} was granted the lock`);
    return reply;
  }

  release(owner: string, more: Partial<ReleaseRequest> = {}) {
    return this.stage.store.release({ name: this.name, owner, leaseTime: LEASE, queue: PLAIN, ...more });
  }

  /** Gives the lock up, and adds an entry for the next owner, in one step. */
  handOver(owner: string, next: string, more: Partial<ReleaseRequest & NextOwner> = {}) {
    const { store } = this.stage;
    const { leaseTime = LEASE, ...rest } = more;
    const request = { name: this.name, owner, leaseTime: LEASE, queue: PLAIN, ...rest };
    return store.queues?.handOver?.(request, { owner: next, leaseTime });
  }

  inspect() {
    return this.stage.other.inspect(this.name);
  }

  async holder(): Promise<string | undefined> {
    return (await this.inspect())?.holders[0]?.owner;
  }

  /** Waits until the hold has ended by itself. */
  isFree(): Promise<void> {
    return until(async () => (await this.holder()) === undefined);
  }

  async queue(): Promise<readonly string[]> {
    return (await this.inspect())?.queue.map(({ owner }) => owner) ?? [];
  }
}

/** The grants of the owner by a message so far. */
export const grantsOf = ({ heard }: Pick<Heard, 'heard'>, owner: string): readonly Grant[] =>
  heard.flatMap((message) => (message.type === 'granted' && message.owner === owner ? message : []));

/** The first grant of the owner by a message. */
export async function grantOf(client: Heard, owner: string): Promise<Grant> {
  await client.granted(owner);
  const [grant] = grantsOf(client, owner);
  assert.ok(grant !== undefined);
  return grant;
}
