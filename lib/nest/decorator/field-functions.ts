import { LockConfigError } from '../../api/errors.js';

/**
 * Refuses an object with a property of its own that hides a decorated method, as a field of a subclass does: calls get the
 * field, and run without the lock. A function that is bound to the method still calls it.
 * @throws LockConfigError
 */
export function assertNotHidden(self: object, method: string | symbol, decorator: string): void {
  const own = Object.getOwnPropertyDescriptor(self, method);
  if (own === undefined || isBoundTo(Reflect.get(Object.getPrototypeOf(self) as object, method), own.value))
    return;
  throw new LockConfigError(
    `${decorator} on ${titleOf(self, method)}`,
    'is hidden by a field of that name, which each object has for itself: calls run the field, without the decorator. Make ' +
      'the field a method with a decorator of its own, give it another name, or write declare before one that is only typed',
  );
}

/**
 * Refuses an object with a function in a field that the class itself declares: the decorator of a class sees only methods.
 * Functions that the object has been given, such as models and callbacks, are not written in the class.
 * @throws LockConfigError
 */
export function assertNoFieldFunctions(self: object, type: object): void {
  for (const field of Reflect.ownKeys(self)) {
    const value: unknown = Object.getOwnPropertyDescriptor(self, field)?.value;
    if (typeof value !== 'function' || !sourceOf(type).includes(sourceOf(value))) continue;
    throw new LockConfigError(
      `@DistributedLock on ${titleOf(self, field)}`,
      'is a function in a field, and the decorator of a class locks only methods: calls of it run without the lock. Make it a ' +
        'method, a function outside of the class or a #private field, or put @DistributedLock on the methods instead of the class',
    );
  }
}

const titleOf = (self: object, member: string | symbol): string =>
  `${self.constructor.name}.${String(member)}`;

/** Private fields and the text of bound functions are hidden, so the name that `bind` gives decides. */
const isBoundTo = (method: unknown, value: unknown): boolean =>
  typeof method === 'function' &&
  typeof value === 'function' &&
  value.name === `bound ${method.name}` &&
  sourceOf(value).includes('[native code]');

/** As the engine runs it. */
const sourceOf = (value: object): string => Function.prototype.toString.call(value);
