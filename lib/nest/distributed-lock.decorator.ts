import 'reflect-metadata';
import type { Observable } from 'rxjs';
import { LockConfigError } from '../lock.errors.js';
import { copyMetadata } from './copy-metadata.js';
import { assertDistributedLockOptions, type DistributedLockOptions } from './distributed-lock.options.js';
import { compileKey, type LockKey } from './lock-key.js';
import { lockObservable, lockPromise, type LockedCall } from './locked-call.js';
import { injectService, serviceOf } from './service-property.js';
import { assertSupported } from './supported-kind.js';

/** What can be locked: the lock is released when the Promise settles or the Observable ends. */
type Lockable = Promise<unknown> | Observable<unknown>;

/** Declared as a method, whose parameters TypeScript compares both ways: a key function may ask for part of an argument. */
interface Fitting<Args extends readonly unknown[]> {
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- parameters that the key does not look at
  method(...args: [...Args, ...any[]]): Lockable;
}

/** Fits methods that begin with the key function's parameters and return a Promise or an Observable. */
export type DistributedLockDecorator<Args extends readonly unknown[]> = <
  Method extends Fitting<Args>['method'],
>(
  target: object,
  property: string | symbol,
  descriptor: TypedPropertyDescriptor<Method>,
) => void;

/**
 * The method runs in one place at a time per key, in the whole fleet.
 *
 * @param key
 *   - text with `$<path>`, as in `'order:$<args[0].id>'`. A path starts with `args[n]`, `this`, `class` or `method` and
 *     goes on with `.name`, `["name"]`, `[n]` and `[*]` (every element: all of them are locked). `$$<` is a literal `$<`.
 *   - several such texts: all of them are locked
 *   - a function of the arguments
 *
 * A value that is missing, empty, no finite number, or an object throws LockKeyError, and the method does not run.
 * @throws LockConfigError where it is applied, when the key or an option is wrong
 */
export function DistributedLock<Args extends readonly unknown[] = []>(
  key: LockKey<Args>,
  options: DistributedLockOptions = {},
): DistributedLockDecorator<Args> {
  const decorate = (target: object, property: string | symbol, descriptor?: PropertyDescriptor): void => {
    const method = descriptor?.value as ((...args: unknown[]) => unknown) | undefined;
    const name = String(property);
    const declared = `${(typeof target === 'function' ? (target as { name: string }) : target.constructor).name}.${name}`;
    if (typeof target === 'function') {
      throw misplaced(
        declared,
        'cannot lock a static method: Nest injects nothing into a class. Make it an instance method',
      );
    }
    if (descriptor === undefined || typeof method !== 'function') {
      throw misplaced(declared, 'goes on a method');
    }
    if (Object.prototype.toString.call(method).includes('Generator')) {
      throw misplaced(
        declared,
        'cannot lock a generator: it runs after its call has ended. Lock whoever iterates it, or return an Observable',
      );
    }
    const makeKeys = atDeclaration(declared, () => {
      assertDistributedLockOptions(options);
      return compileKey(key, ['args', 'this', 'class', 'method']);
    });
    const service = injectService(target, options.instance, (injected) => {
      assertSupported(injected, options.kind, `@DistributedLock on ${declared}`);
    });
    const returns = options.returns ?? declaredReturn(target, property);

    const callOn = (self: object | undefined, args: unknown[]): LockedCall => {
      if (self === undefined) {
        throw misplaced(
          declared,
          'was called without its object, as a method is that was passed on by itself. Pass on a function that calls it',
        );
      }
      const title = `${self.constructor.name}.${name}`;
      const roots = { args, this: self, class: self.constructor.name, method: name };
      return {
        service: serviceOf(self, service, title),
        keys: makeKeys({ roots, args: args as unknown as Args }),
        options,
        title,
      };
    };
    const wrapper =
      returns === 'observable'
        ? function (this: object | undefined, ...args: unknown[]) {
            return lockObservable(
              () => callOn(this, args),
              () => method.apply(this, args),
            );
          }
        : function (this: object | undefined, ...args: unknown[]) {
            return lockPromise(
              () => callOn(this, args),
              () => method.apply(this, args),
            );
          };
    copyMetadata(method, wrapper);
    descriptor.value = wrapper;
  };
  return decorate;
}

/** The wrapper has to choose before the method has run, so the emitted type decides. */
function declaredReturn(target: object, property: string | symbol): 'promise' | 'observable' {
  const type = Reflect.getMetadata('design:returntype', target, property) as
    { prototype?: { subscribe?: unknown } } | undefined;
  // By shape: the application's rxjs may be another copy than ours.
  return typeof type?.prototype?.subscribe === 'function' ? 'observable' : 'promise';
}

const misplaced = (declared: string, rule: string) =>
  new LockConfigError(`@DistributedLock on ${declared}`, rule);

function atDeclaration<T>(declared: string, compile: () => T): T {
  try {
    return compile();
  } catch (error) {
    const { message } = error as Error;
    throw new LockConfigError(`@DistributedLock on ${declared}`, message);
  }
}
