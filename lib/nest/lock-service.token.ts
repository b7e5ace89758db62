import { Inject, type InjectionToken } from '@nestjs/common';
import { assertInstanceName } from '../lock.options.validation.js';
import { LockService } from '../lock.service.js';

/** Under `Symbol.for`, so that two copies of this package mean the same instance. Nest prints it when nothing provides it. */
const tokenOf = (name: string): symbol =>
  Symbol.for(`LockService "${name}" (provided by LockModule.forRoot({ name: "${name}", … }))`);

/**
 * What to inject, or to override in tests, for a LockService.
 * @param name as given to `LockModule.forRoot`; none for the default instance
 * @throws LockConfigError when the name is empty or no string
 */
export function getLockServiceToken(name?: string): InjectionToken<LockService> {
  assertInstanceName(name);
  return name === undefined ? LockService : tokenOf(name);
}

/** Injects the LockService of that name into a constructor parameter or a property. */
export const InjectLockService = (name?: string): PropertyDecorator & ParameterDecorator =>
  Inject(getLockServiceToken(name));
