import type { LockTerms } from '../../client/waiting/request.js';
import { assertName, MAX_LABEL } from '../../client/validation.js';
import { isTime } from '../../api/duration.js';
import { LockConfigError } from '../../api/errors.js';
import { inQuotes } from '../../runtime/text.js';

/** Version of the text. Each change of the form gets a new number, so that a ticket is never misread. */
const VERSION = 1;

const KINDS = ['lock', 'fair', 'read', 'write', 'semaphore'] as const;

export type TravellingKind = (typeof KINDS)[number];

/** The data that another process needs to continue a lease. */
export interface Ticket {
  readonly keyPrefix: string;
  readonly name: string;
  readonly kind: TravellingKind;
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

/** The description of a hold's kind in a ticket. */
export function travellingKind(queue: LockTerms['queue']): Pick<Ticket, 'kind' | 'permits'> {
  const { kind, mode, capacity } = queue ?? { kind: 'lock' };
  if (kind === 'read-write') return { kind: mode === 'shared' ? 'read' : 'write', permits: 1 };
  return { kind, permits: kind === 'semaphore' ? capacity : 1 };
}

export function ticketText(ticket: Ticket): string {
  return Buffer.from(JSON.stringify({ v: VERSION, ...ticket })).toString('base64url');
}

/** @throws LockConfigError if the text is not a ticket for locks of this instance */
export function readTicket(text: unknown, keyPrefix: string): Ticket {
  const read = typeof text === 'string' ? parsed(text) : undefined;
  if (read === undefined) {
    throw new LockConfigError('ticket', 'must be the text that lease.handOver() has given', { value: text });
  }
  if (read.v !== VERSION) {
    const rule = `must be of version ${String(VERSION)}, which this version of the package reads`;
    throw new LockConfigError('ticket', rule, { value: read.v });
  }
  if (!isTicket(read)) {
    throw new LockConfigError('ticket', 'must be the text that lease.handOver() has given, unchanged', {
      value: text,
    });
  }
  assertName(read.name);
  if (read.keyPrefix !== keyPrefix) {
    const rule =
      `is for the lock "${inQuotes(read.name)}" of an instance with the keyPrefix "${inQuotes(read.keyPrefix)}", ` +
      `and this one has "${inQuotes(keyPrefix)}"`;
    throw new LockConfigError('ticket', rule, { key: read.name });
  }
  return read;
}

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(text, 'base64url').toString());
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

const isCount = (value: unknown, least: number): boolean =>
  Number.isSafeInteger(value) && (value as number) >= least;

function isTicket(value: object): value is Ticket {
  const { keyPrefix, name, kind, permits, owner, token, leaseTime, date, end, keepUntil, label } =
    value as Partial<Record<keyof Ticket, unknown>>;
  return (
    typeof keyPrefix === 'string' &&
    typeof name === 'string' &&
    KINDS.includes(kind as TravellingKind) &&
    typeof owner === 'string' &&
    /^[\da-f-]{36}:\d{1,16}$/.test(owner) &&
    typeof label === 'string' &&
    label !== '' &&
    label.length <= MAX_LABEL &&
    isCount(permits, 1) &&
    isCount(token, 1) &&
    isTime(leaseTime, 1) &&
    isCount(date, 0) &&
    isCount(end, 0) &&
    isCount(keepUntil, 0)
  );
}
