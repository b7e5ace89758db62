import 'reflect-metadata';
import type { Type } from '@nestjs/common';
import type { Observable } from 'rxjs';
import type { DistributedLockOptions } from '../../api/options.js';
import type { KeyArgs, LockKey } from '../lock-key.js';
import type {
  BusyOption,
  FittingMethod,
  Instead,
  OnBusy,
  Refusal,
  RefusedDescriptor,
} from './lockable-method.js';
import { lockClass } from './locked-class.js';
import { lockMethod, type LockDeclaration } from './locked-method.js';
import type { CallOptionsMaker, MethodOptions } from './method-options.js';
import { assertNotStandard } from './standard-decorator.js';

/** The options, with the result type of a busy call. */
type MethodOptionsWith<Choice, Given> = Omit<DistributedLockOptions, 'onBusy'> & BusyOption<Choice, Given>;

/** With `returns: 'observable'`: fits classes, and methods that return an Observable, or a Promise of one. */
export interface ObservableLockDecorator<
  Args extends readonly unknown[],
  Given = never,
> extends ClassDecorator {
  /** For a method that cannot be locked: the returned type gives the reason. */
  <Method extends FittingMethod<Args, Promise<Observable<unknown>> | Observable<unknown>>>(
    target: object,
    property: string | symbol,
    descriptor: RefusedDescriptor<Method, Refusal<Method, Args, true, Given>>,
  ): Refusal<Method, Args, true, Given>;
  /** An Observable, or a Promise of one. */
  <Method extends FittingMethod<Args, Promise<Observable<unknown>> | Observable<unknown>>>(
    target: object,
    property: string | symbol,
    descriptor: TypedPropertyDescriptor<Method>,
  ): void;
}

/** With `returns: 'promise'`: fits classes, and methods that return a Promise. */
export interface PromiseLockDecorator<Args extends readonly unknown[], Given = never> extends ClassDecorator {
  /** For a method that cannot be locked: the returned type gives the reason. */
  <Method extends FittingMethod<Args, Promise<unknown>>>(
    target: object,
    property: string | symbol,
    descriptor: RefusedDescriptor<Method, Refusal<Method, Args, false, Given>>,
  ): Refusal<Method, Args, false, Given>;
  /** A Promise. */
  <Method extends FittingMethod<Args, Promise<unknown>>>(
    target: object,
    property: string | symbol,
    descriptor: TypedPropertyDescriptor<Method>,
  ): void;
}

/** Fits classes, and methods that have the arguments that the key needs and return a Promise or an Observable. */
export interface DistributedLockDecorator<
  Args extends readonly unknown[],
  Given = never,
> extends ClassDecorator {
  /** For a method that cannot be locked: the returned type gives the reason. */
  <Method extends FittingMethod<Args, Promise<unknown> | Observable<unknown>>>(
    target: object,
    property: string | symbol,
    descriptor: RefusedDescriptor<Method, Refusal<Method, Args, false, Given>>,
  ): Refusal<Method, Args, false, Given>;
  /** A Promise, or an Observable. */
  <Method extends FittingMethod<Args, Promise<unknown> | Observable<unknown>>>(
    target: object,
    property: string | symbol,
    descriptor: TypedPropertyDescriptor<Method>,
  ): void;
}

/**
 * At any time only one call of the method runs per key, in the whole fleet. On a class, it locks every method that the class
 * itself declares, except Nest's lifecycle hooks and methods with a decorator of their own.
 *
 * @param key
 *   - text with `$<path>`, as in `'order:$<args[0].id>'`. A path starts with `args[n]`, `this`, `class` or `method` and
 *     goes on with `.name`, `["name"]`, `[n]` and `[*]` (every element: all of them are locked). `$$<` is a literal `$<`.
 *   - several such texts: all of them are locked
 *   - a function of the arguments, which may give a Promise; `this` in it is the object
 *
 * @param options also as a function of the arguments, or the name of a preset of the module
 *
 * A value that is missing, empty, no finite number, or an object throws LockKeyError, and the method does not run.
 *
 * The caller gets a plain Promise or Observable, so the type refuses subclasses of them. A subclass that adds nothing to
 * Promise (`class Task<T> extends Promise<T> {}`) is the same type to TypeScript and passes.
 * @throws LockConfigError when it is applied, if the key or an option is wrong
 */
export function DistributedLock<
  Args extends readonly unknown[] = [],
  const Text extends string = string,
  Choice extends OnBusy = undefined,
  Given = never,
>(
  key: LockKey<Args, Text>,
  // First, so that options of type `any` get a decorator that fits both.
  options?: (MethodOptionsWith<Choice, Given> & { returns?: undefined }) | string | CallOptionsMaker<Args>,
): DistributedLockDecorator<KeyArgs<Args, Text>, Instead<Choice, Given>>;
/** For methods that return an Observable, or a Promise of one. */
export function DistributedLock<
  Args extends readonly unknown[] = [],
  const Text extends string = string,
  Choice extends OnBusy = undefined,
  Given = never,
>(
  key: LockKey<Args, Text>,
  options: MethodOptionsWith<Choice, Given> & { returns: 'observable' },
): ObservableLockDecorator<KeyArgs<Args, Text>, Instead<Choice, Given>>;
/** For methods that return a Promise. */
export function DistributedLock<
  Args extends readonly unknown[] = [],
  const Text extends string = string,
  Choice extends OnBusy = undefined,
  Given = never,
>(
  key: LockKey<Args, Text>,
  options: MethodOptionsWith<Choice, Given> & { returns: 'promise' },
): PromiseLockDecorator<KeyArgs<Args, Text>, Instead<Choice, Given>>;
/** For methods that return a Promise, or an Observable that their emitted type announces. */
export function DistributedLock<
  Args extends readonly unknown[] = [],
  const Text extends string = string,
  Choice extends OnBusy = undefined,
  Given = never,
>(
  key: LockKey<Args, Text>,
  // eslint-disable-next-line @typescript-eslint/unified-signatures -- last, so that a known `returns` is used
  options?: MethodOptionsWith<Choice, Given>,
): DistributedLockDecorator<KeyArgs<Args, Text>, Instead<Choice, Given>>;
export function DistributedLock<Args extends readonly unknown[] = []>(
  key: LockKey<Args>,
  options: MethodOptions<Args> = {},
): DistributedLockDecorator<Args> {
  const decorate = (target: object, property?: unknown, descriptor?: PropertyDescriptor): void => {
    assertNotStandard(property);
    const lock = { key, options } as LockDeclaration;
    if (property === undefined && typeof target === 'function') lockClass(target as Type, lock);
    else lockMethod(target, property as string | symbol | undefined, descriptor, lock);
  };
  return decorate as DistributedLockDecorator<Args>;
}
