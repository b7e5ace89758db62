import type { Type } from '@nestjs/common';
import { assertNoFieldFunctions } from './field-functions.js';
import {
  declaredReturn,
  isAsyncFunction,
  isLockedMethod,
  lockMethod,
  misplaced,
  STATIC,
  type LockDeclaration,
} from './locked-method.js';
import { injectService } from '../service/service-property.js';

/** Nest calls these when the application starts and ends. They are no work of the class. */
const LIFECYCLE = [
  'onModuleInit',
  'onApplicationBootstrap',
  'onModuleDestroy',
  'beforeApplicationShutdown',
  'onApplicationShutdown',
];

/** Marks the classes that have the decorator. */
const DECORATED = Symbol.for('nestjs-distributed-lock.locked-class');

/**
 * Locks each method that the class itself declares, except Nest's lifecycle hooks and methods with a `@DistributedLock` of
 * their own.
 * @throws LockConfigError for a method that may be sync: it would be left unlocked silently, or become async; for an async
 *   static method; for a second decorator of the class; at boot for a function in a field
 */
export function lockClass(type: Type, lock: LockDeclaration): void {
  const prototype = type.prototype as object;
  if (Reflect.hasOwnMetadata(DECORATED, type))
    throw misplaced(
      type.name,
      'is there twice, and the second would lock nothing. Give one of them all keys, as an array',
    );
  Reflect.defineMetadata(DECORATED, true, type);
  for (const property of Reflect.ownKeys(type)) {
    const method: unknown = Reflect.getOwnPropertyDescriptor(type, property)?.value;
    if (typeof method === 'function' && isAsyncFunction(method))
      throw misplaced(`${type.name}.${String(property)}`, STATIC);
  }
  let hasMethod = false;
  let hasLocked = false;
  for (const property of Reflect.ownKeys(prototype)) {
    const descriptor = Reflect.getOwnPropertyDescriptor(prototype, property);
    const method: unknown = descriptor?.value;
    if (property === 'constructor' || LIFECYCLE.includes(property as string)) continue;
    if (descriptor === undefined || typeof method !== 'function') continue;
    hasMethod = true;
    if (isLockedMethod(method)) continue;
    if (!isAsyncFunction(method) && declaredReturn(prototype, property) === undefined) {
      throw misplaced(
        `${type.name}.${String(property)}`,
        'would lock a method that may be sync: its type is known only if it is async, or has another decorator. Declare ' +
          'it async, make it a function or a #private method, or put @DistributedLock on the methods instead of the class',
      );
    }
    lockMethod(prototype, property, descriptor, lock);
    Object.defineProperty(prototype, property, descriptor);
    hasLocked = true;
  }
  if (!hasMethod) throw misplaced(type.name, 'finds no method in the class');
  if (!hasLocked) return;
  const instance = typeof lock.options === 'object' ? lock.options.instance : undefined;
  injectService(prototype, instance, (_, self) => {
    assertNoFieldFunctions(self, type);
  });
}
