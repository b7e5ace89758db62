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
 * Runs one statement in the transaction that is guarded, and gives the number of rows that it has changed. The adapters, such
 * as {@link typeorm}, make one of what a library gives.
 */
export type Execute = (sql: string, parameters: unknown[]) => Promise<number>;

/** Options of {@link FencingTable}. */
export interface FencingTableOptions {
  readonly dialect: FencingDialect;
  /**
   * The name of the table, with its schema if it needs one. Services with different `keyPrefix` or another Redis have different
   * locks of one name, so each needs a table of its own.
   * @default 'lock_fences'
   */
  readonly table?: string;
}

/** The first letter keeps out numbers; the table is written into the SQL as it is. */
const IDENTIFIER = /^[A-Za-z_]\w{0,62}(\.[A-Za-z_]\w{0,62})?$/;

/**
 * The half of fencing that belongs to the database: a table with the greatest fencing token that it has seen of each lock. A
 * transaction that begins with {@link guard} is refused once the one of a later holder has committed.
 */
export class FencingTable {
  private readonly table: string;
  private readonly dialect: Dialect;

  /** @throws LockConfigError when the dialect is not known, or the table is no plain identifier */
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
    this.table = table;
  }

  /**
   * The first statement of a transaction. It stores the token of each name of the lease, and locks those rows until the
   * transaction ends: transactions of two holders follow each other, and one from the past is refused. A transaction may call it
   * more than once.
   *
   * Where decorators take no locks (`enabled: false`, `passThroughLocks`), and there is no lease, it does nothing.
   * @param execute runs a statement in that transaction
   * @param lease default: the lease of `using`, the decorator, the interceptor, an election or `once` around the call, the
   * innermost where they are nested
   * @throws LockLostError when the lease has ended, or, with the reason `fenced`, when the table has seen a greater token of one
   * of its names. The transaction has to be rolled back, which its library does for an error
   * @throws LockConfigError when there is no lease, when it is of a reader or of a semaphore, or when `execute` gives no number
   */
  async guard(execute: Execute, lease?: Lease | Term): Promise<void> {
    const guarded = lease ?? currentLease();
    if (guarded === undefined) {
      if (locksPassThrough() || currentScope()?.passesThrough() === true) return;
      const rule = 'runs without a lock. Call it in a locked method or within using, or pass the lease';
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

  /** The statement that makes the table, unless there is one. */
  createTableSql(): string {
    return this.dialect.create(this.table);
  }

  /**
   * The statement that forgets locks whose last guarded lease was acquired before then: fencing tokens are times. A holder
   * from before is not refused any more, so let the moment be days ago.
   * @throws LockConfigError when it is no date
   */
  pruneSql(olderThan: Date): string {
    const time = olderThan instanceof Date ? olderThan.getTime() : NaN;
    if (!(time >= 0)) throw new LockConfigError('olderThan', 'must be a Date', { value: olderThan });
    return `DELETE FROM ${this.table} WHERE token < ${String(time * 1_000)}`;
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
 * In one order: two transactions with the same names wait for each other, and do not deadlock.
 * @throws LockConfigError when a token is no token: a database may take it for 0
 */
function fencesOf(lease: Lease | Term): readonly Fence[] {
  const fences: readonly Fence[] = isTerm(lease) ? [[lease.name, lease.number]] : [...lease.fencingTokens];
  for (const [name, token] of fences) {
    if (typeof name === 'string' && Number.isSafeInteger(token) && token >= 0) continue;
    throw new LockConfigError('lease', 'must be a Lease or a Term', { value: token });
  }
  return [...fences].sort(([a], [b]) => (a < b ? -1 : 1));
}

/** @throws LockConfigError for a lease whose lock has other holders at the same time, each with a token of its own */
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
