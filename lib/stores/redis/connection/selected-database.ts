import type { Redis } from 'ioredis';
import { within } from './bounded.js';
import { isPermanent, NotConnected, replyCode, WrongDatabase } from './redis-errors.js';

/**
 * Makes certain which database a connection is on. If the server refuses SELECT, ioredis emits an error, still becomes ready
 * and stays on database 0: two applications with databases of their own would meet there under one name. So the server is
 * asked once per connection, and after each `select` of the application, before the next command. Database 0 needs no
 * question as long as the application stays there.
 */
export class SelectedDatabase {
  /** The database that the client was on when it was given: the locks live there. */
  private readonly wanted: number;
  private confirmed: boolean;
  private asking: Promise<void> | undefined;
  /** Grows whenever a pending answer says nothing about the present connection. */
  private generation = 0;

  constructor(
    private readonly client: Redis,
    private readonly timeout: number,
  ) {
    this.wanted = this.present;
    this.confirmed = this.isDefault;
  }

  get certain(): boolean {
    return this.confirmed;
  }

  /** The connection is gone: the next one begins on database 0. */
  disconnected(): void {
    this.switched();
    this.confirmed = this.isDefault;
  }

  /** The client has sent a SELECT of another database. This affects the commands after it, not the commands before it. */
  switched(): void {
    this.generation++;
    this.confirmed = false;
  }

  /** Whether an error of the client is the refusal of its own SELECT, which this class sends once more. */
  isOwnBusiness(error: unknown): boolean {
    return (error as { command?: { name?: unknown } }).command?.name === 'select';
  }

  /**
   * Asks once for all callers.
   * @throws WrongDatabase when the server refuses the database, or the application has switched to another one
   * @throws NotConnected when there is no answer
   */
  confirm(): Promise<void> {
    if (this.confirmed) return Promise.resolve();
    this.asking ??= this.ask().finally(() => (this.asking = undefined));
    return this.asking;
  }

  private async ask(): Promise<void> {
    const { client, wanted, present, generation } = this;
    if (present !== wanted) {
      throw new WrongDatabase(
        wanted,
        `the application has switched its client to database ${String(present)}`,
      );
    }
    let reply: unknown;
    try {
      reply = await within(this.timeout, () => client.select(wanted));
    } catch (error) {
      // ERR: out of range, or a cluster, which has only database 0. After a refusal that passes, such as BUSY, the server is
      // asked again.
      if (isPermanent(error) || replyCode(error) === 'ERR') throw new WrongDatabase(wanted, error);
      throw unconfirmed(wanted, error);
    }
    // QUEUED is no answer: the application has opened a transaction.
    if (reply !== 'OK' || generation !== this.generation) throw unconfirmed(wanted);
    this.confirmed = true;
  }

  /** The database of the last SELECT that the client has sent, which it also selects on its next connection. */
  private get present(): number {
    return this.client.condition?.select ?? this.client.options.db ?? 0;
  }

  private get isDefault(): boolean {
    return this.wanted === 0 && (this.client.options.db ?? 0) === 0;
  }
}

const unconfirmed = (database: number, cause?: unknown): NotConnected =>
  new NotConnected(`database ${String(database)} is not confirmed`, cause);
