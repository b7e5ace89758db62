import { describe, expect, it } from '@jest/globals';
import { isLockConfigError } from '../../lib/index.js';
import { decodeCursor, encodeCursor } from '../../lib/locks/listing/list-cursor.js';
import { readTicket, type Ticket, ticketText, travellingKind } from '../../lib/locks/ticket/ticket.js';

const OWNER = '0b5c2f6e-9d1a-4e0f-8a37-1f2e3d4c5b6a:12';
const ticket: Ticket = {
  keyPrefix: 'lock:',
  name: 'job',
  kind: 'semaphore',
  permits: 3,
  owner: OWNER,
  token: 5,
  leaseTime: 30_000,
  date: 1_699_999_970_000,
  end: 1_700_000_000_000,
  keepUntil: 0,
  label: 'import',
};

const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

/** The message with which a text is refused. */
const refusalOf = (text: unknown, keyPrefix = 'lock:'): string => {
  try {
    readTicket(text, keyPrefix);
  } catch (error) {
    return isLockConfigError(error) ? error.message : String(error);
  }
  return 'taken';
};

describe('A ticket', () => {
  it('is read as it was written', () => {
    expect(readTicket(ticketText(ticket), 'lock:')).toMatchObject(ticket);
  });

  it.each<Partial<Ticket>>([
    { permits: 1, token: 1, leaseTime: 1, date: 0, end: 0 },
    { keyPrefix: 'lock:', owner: `${OWNER.slice(0, -2)}9007199254740991` },
    { label: 'x'.repeat(1_024) },
    ...(['lock', 'fair', 'read', 'write'] as const).map((kind) => ({ kind })),
  ])('is taken with %j', (change) => {
    expect(refusalOf(ticketText({ ...ticket, ...change }))).toBe('taken');
  });

  it.each([
    ...['keyPrefix', 'name', 'kind', 'owner', 'label'].map((field) => ({ [field]: 5 })),
    ...['permits', 'token', 'leaseTime', 'date', 'end', 'keepUntil'].flatMap((field) => [
      { [field]: '5' },
      { [field]: 1.5 },
      { [field]: -1 },
    ]),
    ...[{ permits: 0 }, { token: 0 }, { leaseTime: 0 }],
    ...[{ label: '' }, { label: 'x'.repeat(1_025) }],
    ...[{ owner: ` ${OWNER}` }, { owner: `${OWNER} ` }, { owner: OWNER.slice(1) }],
    ...[{ kind: 'multi' }, { kind: undefined }],
  ])('is refused as changed with %j', (change) => {
    expect(refusalOf(encoded({ v: 1, ...ticket, ...change }))).toContain('unchanged');
  });

  it.each([undefined, 7, '', 'not a ticket', encoded(5), encoded(null), encoded('text')])(
    'is not %j',
    (text) => {
      expect(refusalOf(text)).toMatch(/must be the text that lease.handOver\(\) has given(?!, unchanged)/);
    },
  );

  it('names a lock that there can be', () => {
    expect(refusalOf(ticketText({ ...ticket, name: '' }))).toContain('must not be empty');
  });

  it('of another version or of another prefix is refused for that', () => {
    expect(refusalOf(encoded({ ...ticket, v: 2 }))).toContain('version 1');
    expect(refusalOf(encoded(ticket))).toContain('version 1');
    expect(refusalOf(ticketText(ticket), 'other:')).toContain('keyPrefix "lock:"');
  });

  it('names the kind and the permits of what travels', () => {
    expect(travellingKind(undefined)).toEqual({ kind: 'lock', permits: 1 });
    const capacity = 4;
    expect(travellingKind({ kind: 'fair', mode: 'exclusive', capacity: 1 })).toEqual({
      kind: 'fair',
      permits: 1,
    });
    expect(travellingKind({ kind: 'semaphore', mode: 'shared', capacity })).toEqual({
      kind: 'semaphore',
      permits: 4,
    });
    const sides = (['shared', 'exclusive'] as const).map((mode) =>
      travellingKind({ kind: 'read-write', mode, capacity }),
    );
    expect(sides).toEqual([
      { kind: 'read', permits: 1 },
      { kind: 'write', permits: 1 },
    ]);
  });
});

describe('The cursor of a list', () => {
  it.each([
    [undefined, 'a', '8 node'],
    ['7 node', '', undefined],
    ['', 'name, with "quotes"', undefined],
  ])(
    'says where in the step %j it goes on, behind which name (%j), and where the step led',
    (at, after, to) => {
      expect(decodeCursor(encodeCursor({ at, after, to }))).toEqual({ at, after, to });
    },
  );

  it.each([
    ...[undefined, 5, '', 'none'],
    ...[encoded({}), encoded(5), encoded([]), encoded(['a']), encoded([null])],
    ...[encoded([5, 'a']), encoded(['a', 5]), encoded(['a', null]), encoded(['a', 'b', 'c', 'd'])],
  ])('is not %j', (cursor) => {
    expect(() => decodeCursor(cursor)).toThrow('must be the cursor of a page before');
  });
});
