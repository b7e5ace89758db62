import { LockConfigError, LockLostError } from '../api/errors.js';
import type { Term } from '../api/election.js';
import type { Lease } from '../api/lock.js';
import type { OwnLease } from '../locks/own-lease.js';
import { currentLease } from '../nest/current-lease.js';
import { currentScope } from '../client/scope/scope.js';
import { locksPassThrough } from '../nest/decorator/pass-through.js';
import {
  type Dialect,
  dialectOf,
  dialects,
  type Fence,
  type FencingDialect,
  type Statement,
} from './dialect.js';

/**
 * Runs one statement in the guarded transaction, and returns the number of rows that it has changed. Adapters such as
 * {@link typeorm} make an Execute of a library's transaction.
 */
export type Execute = (sql: string, parameters: unknown[]) => Promise<number>;

/** Options of {@link FencingTable}. */
export interface FencingTableOptions {
  readonly dialect: FencingDialect;
  /**
   * The name of the table, with its schema and a dot before it if necessary. The SQL has it in quotes, so capitals
   * count. Services with another `keyPrefix` or another Redis have other locks of the same name, so each needs its own
   * table.
   * @default 'lock_fences'
   */
  readonly table?: string;
}

/** The pattern excludes numbers and quotes, because the SQL contains the name in quotes. */
const IDENTIFIER = /^[A-Za-z_]\w{0,62}(\.[A-Za-z_]\w{0,62})?$/;

/**
 * The database side of fencing: a table with the greatest fencing token that it has seen for each lock. It refuses a
 * transaction that begins with {@link guard} if a transaction of a later holder has committed.
 */
export class FencingTable {
  private readonly table: string;
  private readonly dialect: Dialect;

  /** @throws LockConfigError if the dialect is unknown, or the table is not a plain identifier */
  constructor({ dialect, table = 'lock_fences' }: FencingTableOptions) {
    const found = dialectOf(dialect);
    if (found === undefined) {
      throw new LockConfigError('dialect', `must be one of ${dialects.join(', ')}`, { value: dialect });
    }
    if (typeof table !== 'string' || !IDENTIFIER.test(table)) {
      const rule =
        'must be a name of letters, digits and _, with its schema and a dot before it if it needs one';
      throw new LockConfigError('table', rule, { value: table });
    }
    this.dialect = found;
    this.table = found.quoted(table);
  }

  /**
   * Guards a transaction as its first statement. It stores the token of each name of the lease, and locks these rows
   * until the transaction ends. So transactions of two holders run one after another, and the table refuses an outdated
   * one. A transaction may call it more than once.
   *
   * It does nothing without a lease if decorators take no locks (`enabled: false`, `passThroughLocks`).
   * @param execute runs a statement in that transaction
   * @param lease default: the innermost lease of `using`, the decorator, the interceptor, an election or `once` around
   *   the call. After the callback of that lease there is none, even within an outer lock
   * @throws LockLostError if the lease has ended, or, with the reason `fenced`, if the table has seen a greater token
   *   for one of its names. The transaction must be rolled back; its library does that after an error
   * @throws LockConfigError if there is no lease, if it belongs to a reader or a semaphore, or if `execute` returns no
   *   number
   */
  async guard(execute: Execute, lease?: Lease | Term): Promise<void> {
    const guarded = lease ?? currentLease();
    if (guarded === undefined) {
      if (locksPassThrough() || currentScope()?.passesThrough() === true) return;
      const rule =
        'runs without a lock, or after the callback of its lock. Call it in a locked method or within using, or pass the lease';
      throw new LockConfigError('guard', rule);
    }
    assertAlone(guarded);
    assertPromised(guarded);
    const fences = fencesOf(guarded);
    const { store, check } = this.dialect.guard(this.table, fences);
    if (store !== undefined) await changedRows(execute, store);
    let changed = 0;
    for (const statement of check) changed += await changedRows(execute, statement);
    if (changed === fences.length) return;
    const names = fences.map(([name]) => name).join(',');
    throw new LockLostError(names, { reason: 'fenced', owner: ownerOf(guarded) });
  }

  /** The statement that creates the table if it does not exist. */
  createTableSql(): string {
    return this.dialect.create(this.table);
  }

  /**
   * The statement that removes locks whose last guarded lease was acquired before the given time, because fencing
   * tokens are times. The table no longer refuses holders from before, so choose a time some days ago. The statement
   * locks the removed rows, and waits for transactions that guard one of these names, on MySQL also the next row.
   * @throws LockConfigError if the argument is not a date
   */
  pruneSql(olderThan: Date): string {
    const time = olderThan instanceof Date ? olderThan.getTime() : NaN;
    if (!(time >= 0)) throw new LockConfigError('olderThan', 'must be a Date', { value: olderThan });
    return this.dialect.prune(this.table, String(time * 1_000));
  }
}

async function changedRows(execute: Execute, { sql, parameters }: Statement): Promise<number> {
  const changed: unknown = await execute(sql, parameters);
  if (typeof changed === 'number' && Number.isSafeInteger(changed) && changed >= 0) return changed;
  const rule = 'has to give the number of changed rows, as the adapters do';
  throw new LockConfigError('execute', rule, { value: changed });
}

const isTerm = (lease: Lease | Term): lease is Term => !('fencingTokens' in lease);

/**
 * Sorted, so that two transactions with the same names run one after the other and do not deadlock.
 * @throws LockConfigError if a token is not a number, because a database may read it as 0
 */
function fencesOf(lease: Lease | Term): readonly Fence[] {
  const fences: readonly Fence[] = isTerm(lease) ? [[lease.name, lease.number]] : [...lease.fencingTokens];
  for (const [name, token] of fences) {
    if (typeof name === 'string' && Number.isSafeInteger(token) && token >= 0) continue;
    throw new LockConfigError('lease', 'must be a Lease or a Term', { value: token });
  }
  return [...fences].sort(([a], [b]) => (a < b ? -1 : 1));
}

/** @throws LockConfigError for a lease whose lock may have several holders at a time, each with its own token */
function assertAlone(lease: Lease | Term): void {
  if ((lease as Partial<OwnLease>).isShared !== true) return;
  const rule =
    'is of a reader or of a semaphore, whose holders would refuse each other. Guard with a lock that has one holder';
  throw new LockConfigError('lease', rule, { key: lease.name });
}

function assertPromised(lease: Lease | Term): void {
  if (isTerm(lease)) lease.signal.throwIfAborted();
  else lease.assertHeld();
}

const ownerOf = (lease: Lease | Term): string =>
  isTerm(lease) ? `term ${String(lease.number)}` : lease.owner;
