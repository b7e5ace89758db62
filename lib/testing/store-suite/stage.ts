import assert from './assert.js';
import type { LockStore } from '../../store/lock-store.js';
import type { QueueMessage } from '../../store/queue-messages.js';

/** A location of locks. Any number of stores reach it, like as many processes. */
export interface StorePlace {
  /** Another client of the location. The suite closes it. */
  open(): LockStore;
  /** Ends the location itself. */
  close(): Promise<void>;
}

/** Two clients of one location, for all tests of a suite. */
export class Stage {
  private place: StorePlace | undefined;
  private clients: readonly LockStore[] = [];
  private names = 0;

  constructor(private readonly createPlace: () => Promise<StorePlace>) {}

  get store(): LockStore {
    return this.client(0);
  }

  get other(): LockStore {
    return this.client(1);
  }

  async set(): Promise<void> {
    this.place = await this.createPlace();
    this.clients = [this.open(), this.open()];
  }

  async clear(): Promise<void> {
    for (const client of this.clients) await client.close();
    await this.place?.close();
  }

  open(): LockStore {
    assert.ok(this.place !== undefined, 'the place has not been made');
    return this.place.open();
  }

  freshName(): string {
    return `conformance:${String(++this.names)}`;
  }

  private client(index: number): LockStore {
    const client = this.clients[index];
    assert.ok(client !== undefined, 'the place has not been made');
    return client;
  }
}

export const LEASE = 5_000;
export const sleep = (time: number) => new Promise((resolve) => setTimeout(resolve, time));

/** Waits until the condition holds, 5 s at most. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + 5_000;
  while (!(await condition())) {
    assert.ok(performance.now() < end, `still false after 5 s: ${String(condition)}`);
    await sleep(5);
  }
}

/** Every message to a client is about one of its own owners, and has the fields of its type. */
export function assertMessage(message: QueueMessage, client: string): void {
  const { type, owner } = message;
  assert.ok(['lost', 'asked', 'granted', 'next', 'missed'].includes(type), type);
  if (type !== 'missed' || owner !== undefined) {
    assert.ok(owner?.startsWith(`${client}:`) === true, `${client} was told of ${String(owner)}`);
  }
  if (type === 'granted') {
    assert.ok(Number.isSafeInteger(message.fencingToken), String(message.fencingToken));
    const age = performance.now() - message.grantedAt;
    assert.ok(age >= 0 && age < LEASE, `granted ${String(age)} ms ago`);
    assert.ok(message.leaseTime > 0, String(message.leaseTime));
  }
  if (type === 'next') assert.ok(message.within >= 0 && message.within < Infinity, String(message.within));
}

export function tokenOf(
  reply: { readonly granted: boolean; readonly fencingToken?: number } | undefined,
): number {
  assert.ok(reply?.granted === true && reply.fencingToken !== undefined, 'expected the lock to be granted');
  return reply.fencingToken;
}
