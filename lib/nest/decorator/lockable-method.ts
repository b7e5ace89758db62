import type { Observable } from 'rxjs';
import type { DistributedLockOptions } from '../../api/options.js';

/**
 * Declared as a method, because TypeScript compares the parameters of methods both ways: a key function may ask for part of
 * an argument.
 */
interface Fitting<Args extends readonly unknown[], Result> {
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- parameters that the key does not look at
  method(...args: [...Args, ...any[]]): Result;
}

/** A method with this result, for a key function with these parameters. */
export type FittingMethod<Args extends readonly unknown[], Result> = Fitting<Args, Result>['method'];

/** A type that no decorator may return. If one would return it, TypeScript's error contains the reason. */
interface Refused<Reason extends string> {
  readonly refused: Reason;
}

/** `any` always passes; every other type is checked. */
type UnlessAny<Value, Refusal> = 0 extends 1 & Value ? never : Refusal;

/** A value of an Observable. */
type ValueRefusal<Value> = UnlessAny<
  Value,
  Value extends PromiseLike<unknown>
    ? Refused<'a locked Observable gives no Promises: use mergeMap or concatMap in place of map'>
    : CollectionRefusal<Value>
>;

/** Of a collection that certainly has a class: an object may be one of any class, whose fields are not looked at. */
type CollectionRefusal<Value> = Value extends
  readonly (infer Element)[] | ReadonlySet<infer Element> | ReadonlyMap<unknown, infer Element>
  ? UnlessAny<
      Element,
      [Extract<Element, PromiseLike<unknown>>] extends [never]
        ? never
        : Refused<'the Promises in a result run on without the lock: wait for them, as with Promise.all'>
    >
  : never;

/** The value of a Promise. */
type PromisedRefusal<Value, Announced extends boolean> = UnlessAny<
  Value,
  Value extends Observable<infer Element>
    ? Announced extends true
      ? ValueRefusal<Element>
      : Refused<"a Promise of an Observable needs returns: 'observable'">
    : CollectionRefusal<Value>
>;

type ResultRefusal<Result, Announced extends boolean> =
  Result extends Promise<infer Value>
    ? Promise<Value> extends Result
      ? PromisedRefusal<Value, Announced>
      : Refused<'the caller of a locked method gets a plain Promise: declare Promise, and no subclass'>
    : Result extends Observable<infer Value>
      ? Observable<Value> extends Result
        ? ValueRefusal<Value>
        : Refused<'the caller of a locked method gets a plain Observable: declare Observable, and no subclass'>
      : never;

/** Whether there are fewer parameters than the key needs. */
type ParametersRefusal<
  Args extends readonly unknown[],
  Parameters extends readonly unknown[],
> = Args extends readonly [unknown, ...infer OtherArgs]
  ? Parameters extends readonly []
    ? Refused<'the key needs more arguments than the method has'>
    : Parameters extends readonly [unknown?, ...infer OtherParameters]
      ? ParametersRefusal<OtherArgs, OtherParameters>
      : never
  : never;

/** With the options of a decorator: what `onBusy` is, and what its function gives. */
export interface BusyOption<Choice, Given> {
  onBusy?: Choice | ((busy: BusyCall) => Given);
}

type BusyCall = Parameters<Extract<DistributedLockOptions['onBusy'], (...args: never[]) => unknown>>[0];

/** The choices of `onBusy` that are no function. */
export type OnBusy = 'throw' | 'skip' | undefined;

/** Stands for `'skip'`: undefined from a method with a Promise, nothing from one with an Observable. */
interface Skipped {
  readonly skipped: true;
}

/**
 * The result of a busy call, or never. With a function, TypeScript infers nothing for the choice. A
 * type that may be `'throw'` as well is not checked.
 */
export type Instead<Choice, Given> = [Given] extends [never]
  ? 'throw' extends Choice
    ? never
    : 'skip' extends Choice
      ? Skipped
      : never
  : InsteadOf<Given>;

/** A function without a result gives undefined, and of `unknown` nothing is known. */
type InsteadOf<Given> = unknown extends Given ? never : Given extends Nothing ? undefined : Awaited<Given>;

// eslint-disable-next-line @typescript-eslint/no-invalid-void-type -- the result of a function without one
type Nothing = void;

/** Whether the caller may get a value that the method's type does not have. */
type BusyRefusal<Result, Given> =
  Result extends Promise<infer Value>
    ? InsteadRefusal<Value, Given extends Skipped ? undefined : Given>
    : Result extends Observable<infer Value>
      ? InsteadRefusal<Value | Observable<Value>, Given extends Skipped ? never : Given>
      : never;

type InsteadRefusal<Value, Given> = [Given] extends [never]
  ? never
  : UnlessAny<
      Value,
      Nothing extends Value
        ? never
        : [Given] extends [Value]
          ? never
          : Refused<'the return type of the method must admit the result of onBusy'>
    >;

/** Why the method cannot be locked, or never. */
export type Refusal<
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- of any method
  Method extends (...args: any[]) => unknown,
  Args extends readonly unknown[],
  Announced extends boolean,
  Given = never,
> =
  | ResultRefusal<ReturnType<Method>, Announced>
  | ParametersRefusal<Args, Parameters<Method>>
  | BusyRefusal<ReturnType<Method>, Given>;

/**
 * The parameter of an overload that takes only refused methods. A type that depends on a type parameter of the class cannot
 * be decided: it goes on to the next overload, and is left to the check at run time.
 */
export type RefusedDescriptor<Method, Reason> = [Reason] extends [never]
  ? never
  : TypedPropertyDescriptor<Method>;
