import { assertName, MAX_LABEL } from '../../client/validation.js';
import { isTime } from '../../api/duration.js';
import { LockConfigError } from '../../api/errors.js';
import { inQuotes } from '../../runtime/text.js';
import type { StoreLock } from '../store-lock.js';

/** Version of the text. Each change of the form gets a new number, so that a ticket is never misread. */
const VERSION = 1;

const KINDS: readonly unknown[] = ['lock', 'fair', 'read', 'write', 'semaphore'];

/** The data that another process needs to continue a lease. */
export interface Ticket {
  readonly keyPrefix: string;
  readonly name: string;
  readonly kind: StoreLock['kind'];
  /** The size of a semaphore; 1 for the other kinds. */
  readonly permits: number;
  /** The owner of the lock during the transfer. */
  readonly owner: string;
  /** The token of that owner, which no resource has seen. */
  readonly token: number;
  /** The lease of the process that resumes, ms. It is renewed. */
  readonly leaseTime: number;
  /** Time of creation by the store's clock, ms since the epoch. */
  readonly date: number;
  /** The end of validity, by the same clock. */
  readonly end: number;
  /** The moment until which the store keeps the lock from other owners, by the same clock; 0 without a `minHoldTime`. */
  readonly keepUntil: number;
  readonly label: string;
}

export function ticketText(ticket: Ticket): string {
  return Buffer.from(JSON.stringify({ v: VERSION, ...ticket })).toString('base64url');
}

/** @throws LockConfigError if the text is not a ticket for locks of this instance */
export function readTicket(text: unknown, keyPrefix: string): Ticket {
  const read = parsed(text);
  const rule = 'must be the text that lease.handOver() has given';
  if (read === undefined) throw new LockConfigError('ticket', rule, { value: text });
  if (read.v !== VERSION) {
    const rule = `must be of version ${String(VERSION)}, which this version of the package reads`;
    throw new LockConfigError('ticket', rule, { value: read.v });
  }
  if (!isTicket(read)) throw new LockConfigError('ticket', `${rule}, unchanged`, { value: text });
  assertName(read.name);
  if (read.keyPrefix !== keyPrefix) {
    const rule =
      `is for the lock "${inQuotes(read.name)}" of an instance with the keyPrefix "${inQuotes(read.keyPrefix)}", ` +
      `and this one has "${inQuotes(keyPrefix)}"`;
    throw new LockConfigError('ticket', rule, { key: read.name });
  }
  return read;
}

function parsed(text: unknown): Partial<Record<string, unknown>> | undefined {
  if (typeof text !== 'string') return undefined;
  try {
    const value: unknown = JSON.parse(Buffer.from(text, 'base64url').toString());
    return typeof value === 'object' && value !== null ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

const isCount = (value: unknown, least: number): boolean =>
  Number.isSafeInteger(value) && (value as number) >= least;

function isTicket(value: Partial<Record<string, unknown>>): value is Ticket & Record<string, unknown> {
  const { keyPrefix, name, kind, permits, owner, token, leaseTime, date, end, keepUntil, label } = value;
  return (
    typeof keyPrefix === 'string' &&
    typeof name === 'string' &&
    KINDS.includes(kind) &&
    typeof owner === 'string' &&
    /^[\da-f-]{36}:\d{1,16}$/.test(owner) &&
    typeof label === 'string' &&
    label !== '' &&
    label.length <= MAX_LABEL &&
    [permits, token].every((count) => isCount(count, 1)) &&
    isTime(leaseTime, 1) &&
    [date, end, keepUntil].every((moment) => isCount(moment, 0))
  );
}
