import { LockConfigError } from '../api/errors.js';
import { RESERVED } from './lock-store.js';

const PARTS = Array.from(RESERVED, (_, index) => RESERVED.slice(0, index + 1));

/**
 * A prefix must not turn a name into one that is refused, so that a name that one store accepts is accepted by all stores.
 * @throws LockConfigError
 */
export function assertPrefix(option: string, prefix: unknown): asserts prefix is string {
  if (typeof prefix !== 'string' || !prefix.isWellFormed()) {
    throw new LockConfigError(option, 'must be a string of well-formed Unicode', { value: prefix });
  }
  if (prefix.includes(RESERVED) || PARTS.some((part) => prefix.endsWith(part))) {
    const rule = `must not contain "${RESERVED}", which marks the keys beside a lock, nor end in a part of it`;
    throw new LockConfigError(option, rule, { value: prefix });
  }
}
