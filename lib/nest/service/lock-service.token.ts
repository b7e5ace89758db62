import { Inject, type InjectionToken } from '@nestjs/common';
import { assertInstanceName } from '../../module/options-validation.js';
import { LockService } from '../../module/lock-service.js';
import { assertNotStandard } from '../decorator/standard-decorator.js';

/**
 * The LockService classes of this process: two if one part of it has loaded this package as ESM and another as CommonJS.
 * The decorators of all ask for the first one, so that a decorator of one copy gets the service of the other's module.
 */
const COPIES = Symbol.for('nestjs-distributed-lock.services');
const shared = globalThis as { [COPIES]?: Set<typeof LockService> | undefined };
const copies = (shared[COPIES] ??= new Set<typeof LockService>()).add(LockService);
const [first = LockService] = copies;

/** The classes of the other copies, by which their constructors, and all decorators, ask for the default instance. */
export const otherServiceClasses = (): (typeof LockService)[] =>
  [...copies].filter((copy) => copy !== LockService);

/**
 * Under `Symbol.for`, so that two copies of this package mean the same instance. Nest prints it when no module provides it.
 */
const tokenOf = (name: string): symbol =>
  Symbol.for(`LockService "${name}" (provided by LockModule.forRoot({ name: "${name}", … }))`);

/**
 * The token to inject a LockService, or to override it in tests.
 * @param name as given to `LockModule.forRoot`; none for the default instance
 * @throws LockConfigError when the name is empty or no string
 */
export function getLockServiceToken(name?: string): InjectionToken<LockService> {
  assertInstanceName(name);
  // The class by which a test overrides the service is the one that it has imported.
  return name === undefined ? LockService : tokenOf(name);
}

/** The same for decorators, which may be of another copy than the module. */
export function decoratorToken(name: string | undefined): InjectionToken<LockService> {
  assertInstanceName(name);
  return name === undefined ? first : tokenOf(name);
}

/** Injects the LockService of that name into a constructor parameter or a property. */
export const InjectLockService = (name?: string): PropertyDecorator & ParameterDecorator => {
  const inject = Inject(decoratorToken(name)) as InjectDecorator;
  return (...decorated: Parameters<InjectDecorator>): void => {
    assertNotStandard(decorated[1], '@InjectLockService');
    inject(...decorated);
  };
};

type InjectDecorator = (target: object, property: string | symbol | undefined, index?: number) => void;
