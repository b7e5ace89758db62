import { LockConfigError } from '../../api/errors.js';

/**
 * The second argument of a standard decorator is its context.
 * @throws LockConfigError
 */
export function assertNotStandard(property: unknown, decorator = '@DistributedLock'): void {
  if (typeof property !== 'object' || property === null) return;
  const { kind, name } = property as { kind?: string; name?: string | symbol };
  const declared = name === undefined || name === '' ? `a ${String(kind)} without a name` : String(name);
  throw new LockConfigError(
    `${decorator} on ${declared}`,
    'has been called as a standard (TC39) decorator. Nest needs the other ones: set experimentalDecorators and ' +
      'emitDecoratorMetadata in tsconfig.json, or the same in the compiler that is used',
  );
}
