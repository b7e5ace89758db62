import { Inject } from '@nestjs/common';
import { LockConfigError } from '../../api/errors.js';
import type { LockService } from '../../module/lock-service.js';
import { decoratorToken } from './lock-service.token.js';

/**
 * The property into which Nest puts the LockService. Nest prints its description at boot if no LockModule provides the
 * service, so the description is the cure.
 */
export const serviceProperty = (instance: string | undefined): symbol => {
  const cure = instance === undefined ? '' : `name: "${instance}", `;
  return Symbol.for(
    `the LockService of @DistributedLock (to provide it, import LockModule.forRoot({ ${cure}… }) in the root module)`,
  );
};

/**
 * Makes Nest inject the service into every instance of the class: provider or controller, of any scope, inherited too.
 * @param check called with the service and the object when it is injected; its error fails the boot
 */
export function injectService(
  prototype: object,
  instance: string | undefined,
  check: (service: LockService, self: object) => void,
): symbol {
  const property = serviceProperty(instance);
  Inject(decoratorToken(instance))(prototype, property);
  // Each locked method adds its check to the checks of the others, inherited ones included.
  const others = inherited(prototype, property);
  Object.defineProperty(prototype, property, {
    configurable: true,
    get(this: object) {
      return ofFrozen.get(this)?.get(property);
    },
    set(this: object, service: LockService) {
      check(service, this);
      if (others?.set !== undefined) others.set.call(this, service);
      else keep(this, property, service);
    },
  });
  return property;
}

/**
 * Makes the checks of a class, as if Nest injected the service now. Nest makes instances of a request-scoped or transient
 * provider only on demand.
 */
export function checkInjection(type: unknown, instance: string | undefined, service: LockService): void {
  const prototype: unknown = typeof type === 'function' ? type.prototype : undefined;
  const property = serviceProperty(instance);
  if (typeof prototype !== 'object' || prototype === null || !(property in prototype)) return;
  Reflect.set(Object.create(prototype) as object, property, service);
}

/** The services of objects that take no property: a constructor may freeze its object. */
const ofFrozen = new WeakMap<object, Map<symbol, LockService>>();

function keep(self: object, property: symbol, service: LockService): void {
  if (Object.isExtensible(self)) {
    Object.defineProperty(self, property, { value: service, configurable: true, writable: true });
  } else {
    const services = ofFrozen.get(self) ?? new Map<symbol, LockService>();
    ofFrozen.set(self, services.set(property, service));
  }
}

function inherited(prototype: object | null, property: symbol): PropertyDescriptor | undefined {
  if (prototype === null) return undefined;
  return (
    Object.getOwnPropertyDescriptor(prototype, property) ??
    inherited(Object.getPrototypeOf(prototype) as object | null, property)
  );
}

/** @throws LockConfigError for a method that was called without its object */
export function assertObject(self: object | undefined, declared: string): asserts self is object {
  if (self !== undefined) return;
  throw new LockConfigError(
    declared,
    'was called without its object, as a method is that was passed on by itself. Pass on a function that calls it',
  );
}

/**
 * The service that Nest has injected.
 * @throws LockConfigError when the object was not made by Nest, so that it never runs unlocked
 */
export function serviceOf(
  target: object,
  property: symbol,
  title: string,
  decorator = '@DistributedLock',
): LockService {
  const service = (target as Record<symbol, unknown>)[property];
  if (service !== undefined) return service as LockService;
  throw new LockConfigError(
    title,
    `has ${decorator}, but Nest has injected no LockService into this object. Nest does that after the constructor, for ` +
      'classes that it makes itself: list the class in providers or controllers (useFactory and new leave it out), and ' +
      'import LockModule',
  );
}
