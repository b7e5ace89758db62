import { LockConfigError } from '../api/errors.js';
import type { Lock } from '../api/lock.js';
import type { AcquireOptions } from '../api/options.js';
import type { LockClient } from '../client/lock-client.js';
import { assertKnownOptions, assertOwnOptions, KINDS, NAMED_OPTIONS } from '../client/validation.js';
import { lockOfKind } from '../locks/kinds.js';
import { MultiLock } from '../locks/multi/multi-lock.js';

/** A lock's name. An array is a multi-lock: all or none. */
export type LockName = string | readonly string[];

type Kind = NonNullable<AcquireOptions['kind']>;

/** Takes `kind` out of the options: the lock that is returned has it. */
export function lockAndOptions<O extends AcquireOptions>(
  client: LockClient,
  name: LockName,
  options: O | undefined,
  method: string,
): readonly [Lock, Omit<O, 'kind'> | undefined] {
  if (options === undefined) return [lockOf(client, name), options];
  assertKnownOptions(options, NAMED_OPTIONS, method);
  // What else may be wrong with the others is refused by the lock.
  if (!('kind' in options)) return [lockOf(client, name), options];
  assertOwnOptions(options, NAMED_OPTIONS);
  const { kind = 'lock', ...others } = options;
  if (!KINDS.includes(kind)) {
    throw new LockConfigError('kind', `must be ${KINDS.join(' or ')}`, { value: kind });
  }
  return [lockOf(client, name, kind), others];
}

export function lockOf(client: LockClient, name: LockName, kind: Kind = 'lock'): Lock {
  if (!Array.isArray(name)) return lockOfKind(client, name as string, kind);
  if (name.length === 0) throw new LockConfigError('name', 'an array of names must not be empty');
  const locks = (name as readonly string[]).map((member) => lockOfKind(client, member, kind));
  return new MultiLock(locks, client);
}
