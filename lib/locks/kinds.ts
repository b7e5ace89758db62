import type { LockClient, QueueTerms } from '../client/lock-client.js';
import { cureOf } from '../api/duration.js';
import { LockConfigError } from '../api/errors.js';
import { StoreLock } from './store-lock.js';

const FAIR = { kind: 'fair', mode: 'exclusive', capacity: 1 } as const;
const READ = { kind: 'read-write', mode: 'shared', capacity: Number.MAX_SAFE_INTEGER } as const;
const WRITE = { ...READ, mode: 'exclusive' } as const;

/** @param permits of a semaphore */
export function lockOfKind(
  client: LockClient,
  name: string,
  kind: StoreLock['kind'],
  permits?: number,
): StoreLock {
  if (kind === 'lock') return new StoreLock(name, client);
  if (kind === 'fair') return new StoreLock(name, client, FAIR);
  if (kind === 'semaphore') return new StoreLock(name, client, termsFor(name, permits));
  return readWriteLock(client, name)[kind];
}

/** Readers share it; a writer has it alone. The order of arrival decides. */
export function readWriteLock(client: LockClient, name: string): Record<'read' | 'write', StoreLock> {
  const read = new StoreLock(name, client, READ);
  const write = new StoreLock(name, client, WRITE);
  read.otherSide = write;
  write.otherSide = read;
  return { read, write };
}

function termsFor(name: string, permits: unknown): QueueTerms {
  if (!Number.isSafeInteger(permits) || (permits as number) < 1) {
    const rule = `must be a whole number from 1 on${cureOf(permits)}`;
    throw new LockConfigError('permits', rule, { value: permits, key: name });
  }
  return { kind: 'semaphore', mode: 'shared', capacity: permits as number };
}
