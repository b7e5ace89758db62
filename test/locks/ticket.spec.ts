import { afterAll, describe, expect, it } from '@jest/globals';
import { isLockConfigError, isLockLostError, LockService } from '../../lib/index.js';

const OWNER = '0b5c2f6e-9d1a-4e0f-8a37-1f2e3d4c5b6a:12';
/** What a ticket says, as JSON in base64url. */
const ticket = {
  v: 1,
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

const locks = new LockService({ store: 'memory' });

afterAll(() => locks.close());

/** The message with which a text is refused, or that it was taken: the store knows no such lock. */
async function refusalOf(text: unknown): Promise<string> {
  const error: unknown = await locks.resume(text as string).catch((reason: unknown) => reason);
  if (isLockLostError(error)) return 'taken';
  return isLockConfigError(error) ? error.message : String(error);
}

describe('A ticket', () => {
  it.each<object>([
    { permits: 1, token: 1, leaseTime: 1, date: 0, end: 0 },
    { keyPrefix: 'lock:', owner: `${OWNER.slice(0, -2)}9007199254740991` },
    { label: 'x'.repeat(1_024) },
    ...(['lock', 'fair', 'read', 'write'] as const).map((kind) => ({ kind })),
  ])('is taken with %j', async (change) => {
    expect(await refusalOf(encoded({ ...ticket, ...change }))).toBe('taken');
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
  ])('is refused as changed with %j', async (change) => {
    expect(await refusalOf(encoded({ ...ticket, ...change }))).toContain('unchanged');
  });

  it.each([undefined, 7, '', 'not a ticket', encoded(5), encoded(null), encoded('text')])(
    'is not %j',
    async (text) => {
      expect(await refusalOf(text)).toMatch(
        /must be the text that lease.handOver\(\) has given(?!, unchanged)/,
      );
    },
  );

  it('is refused where no lease travels: on nodes', async () => {
    const nodes = [1, 2, 3].map((port) => `redis://127.0.0.1:${String(port)}`);
    await using quorum = new LockService({ nodes });
    await expect(quorum.resume(encoded(ticket))).rejects.toThrow('could each get some of the nodes');
  });

  it('names a lock that there can be', async () => {
    expect(await refusalOf(encoded({ ...ticket, name: '' }))).toContain('must not be empty');
  });

  it('of another version or of another prefix is refused for that', async () => {
    expect(await refusalOf(encoded({ ...ticket, v: 2 }))).toContain('version 1');
    expect(await refusalOf(encoded({ ...ticket, v: undefined }))).toContain('version 1');
    expect(await refusalOf(encoded({ ...ticket, keyPrefix: 'app:' }))).toContain('keyPrefix "app:"');
  });
});

describe('The cursor of a list', () => {
  it.each([
    ...[5, '', 'none'],
    ...[encoded({}), encoded(5), encoded([]), encoded(['a']), encoded([null])],
    ...[encoded([5, 'a']), encoded(['a', 5]), encoded(['a', null]), encoded(['a', 'b', 'c', 'd'])],
  ])('is not %j', async (cursor) => {
    await expect(locks.list({ cursor: cursor as string })).rejects.toThrow(
      'must be the cursor of a page before',
    );
  });
});
