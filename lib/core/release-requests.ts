import type { Asker } from '../lock.asker.js';
import { uuid } from '../lock.runtime.js';
import type { LockStore } from '../port/lock-store.js';
import { oldestBeyond } from '../port/oldest-beyond.js';
import type { AskedMessage, AskRequest } from '../port/queue-messages.js';
import type { EventStream } from './event-stream.js';
import type { Labels } from './labels.js';
import type { Tenure } from './tenure.js';

/** How many requests are remembered: of each, a store may tell several times. */
const MOST_REMEMBERED = 1_000;

interface ReleaseRequestsContext {
  readonly store: Pick<LockStore, 'inspect' | 'requestRelease'>;
  readonly labels: Pick<Labels, 'isOwn'>;
  readonly events: EventStream;
  /** The label of this client. */
  readonly label: string;
  /** The tenures of this client. */
  readonly tenures: { keys(): Iterable<Tenure> };
}

/**
 * Asks the holders of a lock to release it, and tells the holders of this client that another asks. A request concerns the
 * holds of its moment. It takes nothing away, and it is a hint: a message that is lost is not repeated.
 */
export class ReleaseRequests {
  /** The requests that have been told of, by id and owner. */
  private readonly told = new Set<string>();
  /** By owner: the message may have overtaken the reply that grants the hold. */
  private readonly early = new Map<string, AskedMessage>();

  constructor(private readonly context: ReleaseRequestsContext) {}

  /**
   * @returns how many holders were asked
   * @throws LockUnavailableError when the store did not answer in time
   */
  async send(name: string, reason: string | undefined): Promise<number> {
    const { store, label: by, events } = this.context;
    const stored = await store.inspect(name);
    const id = uuid();
    const asked = (stored?.holders ?? []).map(({ owner }) => this.ask({ id, name, owner, by, reason }));
    const holders = (await Promise.all(asked)).filter((isAsked) => isAsked).length;
    events.next({ type: 'release-request-sent', name, holders, reason });
    return holders;
  }

  /** Another client, or this one, asks for what one of the owners of this client holds. */
  onMessage(message: AskedMessage): void {
    const { id, owner } = message;
    const key = `${id} ${owner}`;
    if (this.told.has(key)) return;
    this.told.add(key);
    forgetOldest(this.told);
    if (this.tell(message)) return;
    this.early.set(owner, message);
    forgetOldest(this.early);
  }

  /** A hold has begun. */
  begun(tenure: Tenure): void {
    const message = this.early.get(tenure.owner);
    if (message === undefined) return;
    this.early.delete(tenure.owner);
    this.tell(message);
  }

  private async ask(request: AskRequest): Promise<boolean> {
    const { store, labels } = this.context;
    const { owner } = request;
    if (labels.isOwn(owner)) return this.tell(request);
    return (await store.requestRelease?.(request)) ?? false;
  }

  private tell({ owner, name, by, reason }: AskRequest): boolean {
    const asker: Asker = { by, reason };
    const held = [...this.context.tenures.keys()].filter((tenure) => tenure.owner === owner);
    // Several locks that were taken in one step have one owner. Another service may divide the key otherwise between its
    // keyPrefix and the name: then all of them are meant.
    const named = held.filter((tenure) => tenure.name === name);
    for (const tenure of named.length > 0 ? named : held) tenure.ask(asker);
    return held.length > 0;
  }
}

function forgetOldest(kept: Set<string> | Map<string, unknown>): void {
  const oldest = oldestBeyond(MOST_REMEMBERED, kept);
  if (oldest !== undefined) kept.delete(oldest);
}
