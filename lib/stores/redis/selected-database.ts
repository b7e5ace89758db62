import type { Redis } from 'ioredis';
import { within } from './bounded.js';
import { isPermanent, NotConnected, replyCode, WrongDatabase } from './redis-errors.js';

/** A SELECT or a RESET of the application. */
interface Switch {
  readonly database: number;
}

/**
 * Makes certain which database a connection is on. If the server refuses SELECT, ioredis emits an error, still becomes ready
 * and stays on database 0: two applications with databases of their own would meet there under one name. So the server is
 * asked once per connection, before the first command. Database 0 needs no question.
 */
export class SelectedDatabase {
  /** The database that the client was on when it was given: the locks live there. */
  private readonly wanted: number;
  private confirmed: boolean;
  /**
   * The databases of this connection, in order, which ioredis does not always know: the one that the server has confirmed last,
   * then the target of each switch that the server has not answered. Empty if the application has not switched.
   */
  private switches: Switch[] = [];
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
    this.switches = [];
    this.forget();
    this.confirmed = this.isDefault;
  }

  /**
   * The application sends a SELECT or a RESET over its own client. This affects the commands after it, not the commands
   * before it.
   * @returns to be called with the server's answer; undefined if it leads to no other database
   */
  switchedTo(database: number): ((isRefused: boolean) => void) | undefined {
    const { present, switches } = this;
    // The server may still refuse the switch that has led there.
    if (database === present && switches.length <= 1) return undefined;
    if (switches.length === 0) switches.push({ database: present });
    const asked = { database };
    switches.push(asked);
    this.forget();
    return (isRefused) => {
      const at = switches.indexOf(asked);
      if (isRefused && at > 0) switches.splice(at, 1);
      else if (at > 0) switches.splice(0, at);
    };
  }

  /** Whether an error of the client is the refusal of its own SELECT, which this class sends once more. */
  isOwnBusiness(error: unknown): boolean {
    return (error as { command?: { name?: unknown } }).command?.name === 'select';
  }

  /**
   * Asks once for all callers.
   * @throws WrongDatabase when the server refuses the database, or the application has switched to another one
   * @throws NotConnected when there is no answer, or a switch of the application has none yet
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
    // The switch may be part of a transaction that is not carried out. Then a SELECT sent now would take the application away
    // from the database where it is.
    if (this.switches.length > 1) throw unconfirmed(wanted);
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

  private forget(): void {
    this.generation++;
    this.confirmed = false;
  }

  /** The database that the connection is on as far as is known here. */
  private get present(): number {
    return this.switches.at(-1)?.database ?? this.client.condition?.select ?? this.client.options.db ?? 0;
  }

  private get isDefault(): boolean {
    return this.wanted === 0 && (this.client.options.db ?? 0) === 0;
  }
}

const unconfirmed = (database: number, cause?: unknown): NotConnected =>
  new NotConnected(`database ${String(database)} is not confirmed`, cause);
