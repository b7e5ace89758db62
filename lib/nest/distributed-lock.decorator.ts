import 'reflect-metadata';
import type { Type } from '@nestjs/common';
import type { Observable } from 'rxjs';
import { LockConfigError } from '../lock.errors.js';
import { copyMetadata } from './copy-metadata.js';
import { assertDistributedLockOptions, type DistributedLockOptions } from './distributed-lock.options.js';
import { compileKey, type LockKey } from './lock-key.js';
import type { FittingMethod, Refusal, RefusedDescriptor } from './lockable-method.js';
import { lockObservable, lockPromise, type LockedCall } from './locked-call.js';
import { isLeftToCall, watchAnswer } from './own-answer.js';
import { injectService, serviceOf } from './service-property.js';
import { assertSupported } from './supported-kind.js';

/** With `returns: 'observable'`: fits methods that return an Observable, or a Promise of one. */
export interface ObservableLockDecorator<Args extends readonly unknown[]> {
  /** For a method that cannot be locked: the returned type gives the reason. */
  <Method extends FittingMethod<Args, Promise<Observable<unknown>> | Observable<unknown>>>(
    target: object,
    property: string | symbol,
    descriptor: RefusedDescriptor<Method, Refusal<Method, Args, true>>,
  ): Refusal<Method, Args, true>;
  /** An Observable, or a Promise of one. */
  <Method extends FittingMethod<Args, Promise<Observable<unknown>> | Observable<unknown>>>(
    target: object,
    property: string | symbol,
    descriptor: TypedPropertyDescriptor<Method>,
  ): void;
}

/** With `returns: 'promise'`: fits methods that return a Promise. */
export interface PromiseLockDecorator<Args extends readonly unknown[]> {
  /** For a method that cannot be locked: the returned type gives the reason. */
  <Method extends FittingMethod<Args, Promise<unknown>>>(
    target: object,
    property: string | symbol,
    descriptor: RefusedDescriptor<Method, Refusal<Method, Args, false>>,
  ): Refusal<Method, Args, false>;
  /** A Promise. */
  <Method extends FittingMethod<Args, Promise<unknown>>>(
    target: object,
    property: string | symbol,
    descriptor: TypedPropertyDescriptor<Method>,
  ): void;
}

/** Fits methods that have the key function's parameters, or begin with them, and return a Promise or an Observable. */
export interface DistributedLockDecorator<Args extends readonly unknown[]> {
  /** For a method that cannot be locked: the returned type gives the reason. */
  <Method extends FittingMethod<Args, Promise<unknown> | Observable<unknown>>>(
    target: object,
    property: string | symbol,
    descriptor: RefusedDescriptor<Method, Refusal<Method, Args, false>>,
  ): Refusal<Method, Args, false>;
  /** A Promise, or an Observable. */
  <Method extends FittingMethod<Args, Promise<unknown> | Observable<unknown>>>(
    target: object,
    property: string | symbol,
    descriptor: TypedPropertyDescriptor<Method>,
  ): void;
}

/**
 * At any time only one call of the method runs per key, in the whole fleet.
 *
 * @param key
 *   - text with `$<path>`, as in `'order:$<args[0].id>'`. A path starts with `args[n]`, `this`, `class` or `method` and
 *     goes on with `.name`, `["name"]`, `[n]` and `[*]` (every element: all of them are locked). `$$<` is a literal `$<`.
 *   - several such texts: all of them are locked
 *   - a function of the arguments
 *
 * A value that is missing, empty, no finite number, or an object throws LockKeyError, and the method does not run.
 *
 * The caller gets a plain Promise or Observable, so the type refuses subclasses of them. A subclass that adds nothing to
 * Promise (`class Task<T> extends Promise<T> {}`) is the same type to TypeScript and passes.
 * @throws LockConfigError where it is applied, when the key or an option is wrong
 */
export function DistributedLock<Args extends readonly unknown[] = []>(
  key: LockKey<Args>,
  // First, so that options of type `any` get a decorator that fits both.
  options?: DistributedLockOptions & { returns?: undefined },
): DistributedLockDecorator<Args>;
/** For methods that return an Observable, or a Promise of one. */
export function DistributedLock<Args extends readonly unknown[] = []>(
  key: LockKey<Args>,
  options: DistributedLockOptions & { returns: 'observable' },
): ObservableLockDecorator<Args>;
/** For methods that return a Promise. */
export function DistributedLock<Args extends readonly unknown[] = []>(
  key: LockKey<Args>,
  options: DistributedLockOptions & { returns: 'promise' },
): PromiseLockDecorator<Args>;
/** For methods that return a Promise, or an Observable that their emitted type announces. */
export function DistributedLock<Args extends readonly unknown[] = []>(
  key: LockKey<Args>,
  // eslint-disable-next-line @typescript-eslint/unified-signatures -- last, so that what is known of `returns` is used
  options?: DistributedLockOptions,
): DistributedLockDecorator<Args>;
export function DistributedLock<Args extends readonly unknown[] = []>(
  key: LockKey<Args>,
  options: DistributedLockOptions = {},
): DistributedLockDecorator<Args> {
  const decorate = (
    target: object,
    property: string | symbol | undefined,
    descriptor?: PropertyDescriptor,
  ): void => {
    const method = descriptor?.value as ((...args: unknown[]) => unknown) | undefined;
    const className = (typeof target === 'function' ? (target as { name: string }) : target.constructor).name;
    if (property === undefined) throw misplaced(className, 'goes on a method');
    const name = String(property);
    const declared = `${className}.${name}`;
    if (descriptor === undefined || typeof method !== 'function') {
      throw misplaced(declared, 'goes on a method');
    }
    if (typeof target === 'function') {
      throw misplaced(
        declared,
        'cannot lock a static method: Nest injects nothing into a class. Make it an instance method',
      );
    }
    if (Object.prototype.toString.call(method).includes('Generator')) {
      throw misplaced(
        declared,
        'cannot lock a generator: it runs after its call has ended. Lock the method that iterates it, or return an Observable',
      );
    }
    const makeKeys = atDeclaration(declared, () => {
      assertDistributedLockOptions(options);
      return compileKey(key, ['args', 'this', 'class', 'method']);
    });
    const service = injectService(target, options.instance, (injected) => {
      assertSupported(injected, options.kind, `@DistributedLock on ${declared}`);
    });
    const emitted = declaredReturn(target, property);
    const returns = options.returns ?? emitted;

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
        isSoleAnswer: isLeftToCall(self.constructor as Type, property, args),
        unfinished: watchAnswer(self.constructor as Type, property, args),
      };
    };
    const lock = returns === 'observable' ? lockObservable : lockPromise;
    // The caller expects a Promise, whatever its value is.
    const isAsync =
      emitted === 'promise' || Object.prototype.toString.call(method) === '[object AsyncFunction]';
    const wrapper = function (this: object | undefined, ...args: unknown[]) {
      const result = lock(
        () => callOn(this, args),
        () => method.apply(this, args),
      );
      return isAsync ? Promise.resolve(result) : result;
    };
    copyMetadata(method, wrapper);
    descriptor.value = wrapper;
  };
  return decorate as DistributedLockDecorator<Args>;
}

/** The wrapper has to choose before the method has run, so the emitted type decides. */
function declaredReturn(target: object, property: string | symbol): 'promise' | 'observable' | undefined {
  const type = Reflect.getMetadata('design:returntype', target, property) as
    { prototype?: { subscribe?: unknown; then?: unknown } } | undefined;
  // By shape: the application's rxjs may be another copy than the one of this package.
  if (typeof type?.prototype?.subscribe === 'function') return 'observable';
  return typeof type?.prototype?.then === 'function' ? 'promise' : undefined;
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
