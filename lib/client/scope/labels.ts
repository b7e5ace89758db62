import { keeperOf } from '../../api/lock-state.js';
import type { LockStore, StoreLabels } from '../../store/lock-store.js';
import { LastEntries } from '../last-entries.js';
import { now } from '../holding/deadline.js';
import { answerWithin } from '../waiting/answer-within.js';

/** Life of a label after the last long hold of its client, ms. Most leases are shorter. */
const LIFE = 60_000;
/** Pause before a failed write of a label is tried again, ms. */
const RETRY = 10_000;
/** Longest wait for a label of a holder, ms. An answer is complete without the label. */
const LOOKUP_TIME = 250;
/** Remembered labels of other processes, at least. */
const KNOWN = 1_000;

/** The labels of all clients of this process, by client id, shared by all copies of this package. */
const CLIENTS = Symbol.for('nestjs-distributed-lock.clients');
const shared = globalThis as { [CLIENTS]?: Map<string, string> | undefined };
const ofThisProcess = (shared[CLIENTS] ??= new Map<string, string>());

/** The client of an owner. For a lock that is kept after its release, the owner that released it. */
const clientOf = (owner: string): string => keeperOf(owner).replace(/:\d+$/, '');

/**
 * Labels of clients. The store keeps the label of a client for other processes when a hold or an acquisition has lasted
 * for 1 s, or when a lock stays taken after its release. Shorter holds and waits are not worth a command.
 */
export class Labels {
  private readonly known = new LastEntries<string, string>(KNOWN);
  /** Questions under way, by client, so that 1,000 waiters that give up together ask once. */
  private readonly asked = new Map<string, Promise<string | undefined>>();
  private keptUntil = -Infinity;
  /** The earliest moment of the next write after a failed one. */
  private retryAt = -Infinity;

  constructor(
    private readonly store: Pick<LockStore, 'labels'>,
    private readonly client: string,
    private readonly label: string,
  ) {
    ofThisProcess.set(client, label);
  }

  close(): void {
    ofThisProcess.delete(this.client);
  }

  /** Lets other processes find this client's label for at least `time` ms. */
  keep(time = 0): void {
    const { labels } = this.store;
    const moment = now();
    if (labels === undefined || moment < this.retryAt) return;
    if (this.keptUntil >= moment + Math.max(time, LIFE / 2)) return;
    this.keptUntil = moment + time + LIFE;
    void this.send(labels, time + LIFE);
  }

  /** A store of the application may throw. Nothing may throw from a timer or before a release. */
  private async send(labels: StoreLabels, time: number): Promise<void> {
    try {
      await labels.keep(this.client, this.label, time);
    } catch {
      this.keptUntil = -Infinity;
      this.retryAt = now() + RETRY;
    }
  }

  /** Whether the owner belongs to another client of this process. */
  isSibling(owner: string): boolean {
    const client = clientOf(owner);
    return client !== this.client && ofThisProcess.has(client);
  }

  isOwn(owner: string): boolean {
    return clientOf(owner) === this.client;
  }

  /** The label of an owner, if it is known without a question to the store. */
  knownOf(owner: string): string | undefined {
    const client = clientOf(owner);
    return ofThisProcess.get(client) ?? this.known.get(client);
  }

  /** The label of an owner. Never rejects, and answers within LOOKUP_TIME. */
  async find(owner: string): Promise<string | undefined> {
    const known = this.knownOf(owner);
    const { labels } = this.store;
    if (known !== undefined || labels === undefined) return known;
    const client = clientOf(owner);
    const until = now() + LOOKUP_TIME;
    const label = await answerWithin(this.ask(labels, client), owner, { until }).catch(() => undefined);
    if (label !== undefined) this.known.set(client, label);
    return label;
  }

  private ask(labels: StoreLabels, client: string): Promise<string | undefined> {
    let answer = this.asked.get(client);
    if (answer === undefined) {
      answer = ask(labels, client).finally(() => this.asked.delete(client));
      this.asked.set(client, answer);
    }
    return answer;
  }
}

async function ask(labels: StoreLabels, client: string): Promise<string | undefined> {
  try {
    return await labels.find(client);
  } catch {
    return undefined;
  }
}
