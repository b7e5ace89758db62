import { clearTimer, setTimer } from '../../runtime/runtime.js';
import { keeperOf } from '../../api/lock-state.js';
import type { LockStore, StoreLabels } from '../../store/lock-store.js';
import { oldestBeyond } from '../../store/oldest-beyond.js';
import { now } from '../holding/deadline.js';

/** How long a label is kept after the last long hold of its client, ms. A lease is mostly shorter. */
const LIFE = 60_000;
/** When a label that could not be kept is tried again, ms. */
const RETRY = 10_000;
/** How long the store may take to say what a holder is called, ms. The answer that waits for it is complete without it. */
const LOOKUP_TIME = 250;
/** How many labels of other processes are remembered. */
const MOST_KNOWN = 1_000;

/** The labels of the clients of this process, of all copies of this package, by client id. */
const CLIENTS = Symbol.for('nestjs-distributed-lock.clients');
const shared = globalThis as { [CLIENTS]?: Map<string, string> | undefined };
const ofThisProcess = (shared[CLIENTS] ??= new Map<string, string>());

/** The client of an owner. A lock that is kept after its release has the owner that released it. */
const clientOf = (owner: string): string => keeperOf(owner).replace(/:\d+$/, '');

/**
 * What clients are called. A store can tell other processes. It is given the label of a client when a hold has lasted for a
 * second, or stays after its release, or when an acquisition has lasted for a second. What is over in a moment is of no interest.
 */
export class Labels {
  private readonly known = new Map<string, string>();
  /** The questions that are under way, by client. A thousand waiters that give up together ask once. */
  private readonly asked = new Map<string, Promise<string | undefined>>();
  private keptUntil = -Infinity;
  /** A label that could not be kept is not tried again before this moment. */
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

  /** Lets other processes find this client's label for `time` ms at least. */
  keep(time = 0): void {
    const { labels } = this.store;
    const moment = now();
    if (labels === undefined || moment < this.retryAt) return;
    if (this.keptUntil >= moment + Math.max(time, LIFE / 2)) return;
    this.keptUntil = moment + time + LIFE;
    void this.send(labels, time + LIFE);
  }

  /** Nothing may throw from a timer or before a release, whatever the store does. */
  private async send(labels: StoreLabels, time: number): Promise<void> {
    try {
      await labels.keep(this.client, this.label, time);
    } catch {
      this.keptUntil = -Infinity;
      this.retryAt = now() + RETRY;
    }
  }

  /** The owner belongs to another client of this process. */
  isSibling(owner: string): boolean {
    const client = clientOf(owner);
    return client !== this.client && ofThisProcess.has(client);
  }

  isOwn(owner: string): boolean {
    return clientOf(owner) === this.client;
  }

  /** The label of an owner as far as it is known without asking. */
  knownOf(owner: string): string | undefined {
    const client = clientOf(owner);
    return ofThisProcess.get(client) ?? this.known.get(client);
  }

  /** The label of an owner. Never rejects, and answers in a moment. */
  async find(owner: string): Promise<string | undefined> {
    const known = this.knownOf(owner);
    const { labels } = this.store;
    if (known !== undefined || labels === undefined) return known;
    const client = clientOf(owner);
    let timer: NodeJS.Timeout | undefined;
    const tooLate = new Promise<undefined>((resolve) => {
      timer = setTimer(() => {
        resolve(undefined);
      }, LOOKUP_TIME);
    });
    const label = await Promise.race([this.ask(labels, client), tooLate]);
    clearTimer(timer);
    if (label === undefined) return undefined;
    this.known.set(client, label);
    const oldest = oldestBeyond(MOST_KNOWN, this.known);
    if (oldest !== undefined) this.known.delete(oldest);
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
