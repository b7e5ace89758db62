import { uuid } from '../../runtime/runtime.js';
import { LastEntries } from '../last-entries.js';
import type { AskedMessage, AskRequest } from '../../store/queue-messages.js';
import type { LockClient } from '../lock-client.js';
import { Seen } from '../seen.js';
import type { Tenure } from './tenure.js';

/** Requests, at least, that are kept for holds that may be about to begin. */
const EARLY = 1_000;

/**
 * Asks the holders of a lock to release it, and reports such requests to the holders of this client. A request concerns
 * the holds of that moment and takes nothing away. It is a hint: a lost message is not repeated.
 */
export class ReleaseRequests {
  /** Requests already reported, by id and owner. */
  private readonly told = new Seen();
  /** By owner: the message may overtake the reply that grants the hold. */
  private readonly early = new LastEntries<string, AskedMessage>(EARLY);

  constructor(
    private readonly client: Pick<LockClient, 'store' | 'labels' | 'events' | 'options' | 'tenures'>,
  ) {}

  /**
   * @returns the number of holders that were asked
   * @throws LockUnavailableError if the store did not answer in time
   */
  async send(name: string, reason: string | undefined): Promise<number> {
    const { store, options, events } = this.client;
    const { label: by } = options;
    const stored = await store.inspect(name);
    const id = uuid();
    const asked = (stored?.holders ?? []).map(({ owner }) => this.ask({ id, name, owner, by, reason }));
    const holders = (await Promise.all(asked)).filter((isAsked) => isAsked).length;
    events.next({ type: 'release-request-sent', name, holders, reason });
    return holders;
  }

  /** Any client, also this one, may send a request to an owner of this client. */
  onMessage(message: AskedMessage): void {
    const { id, owner } = message;
    if (this.told.add(`${id} ${owner}`) && !this.tell(message)) this.early.set(owner, message);
  }

  begun(tenure: Tenure): void {
    const message = this.early.get(tenure.owner);
    if (message === undefined) return;
    this.early.delete(tenure.owner);
    this.tell(message);
  }

  private async ask(request: AskRequest): Promise<boolean> {
    const { store, labels } = this.client;
    const { owner } = request;
    if (labels.isOwn(owner)) return this.tell(request);
    return (await store.requestRelease?.(request)) ?? false;
  }

  private tell({ id, owner, name, by, reason }: AskRequest): boolean {
    const { tenures } = this.client;
    const isAsked = (tenure: Tenure) => tenure.owner === owner;
    // Locks that were taken in one step have one owner. Another service may split the key into keyPrefix and name
    // differently; if no name matches, the request concerns all locks of the owner.
    const named = tenures.of(name).filter(isAsked);
    const asked = named.length > 0 ? named : tenures.all.filter(isAsked);
    const holders = Math.max(asked.length, tenures.of(name).length);
    for (const tenure of asked) tenure.ask({ request: id, holders, by, reason });
    return asked.length > 0;
  }
}
