import 'reflect-metadata';
import type { Type } from '@nestjs/common';
import { LockConfigError } from '../../api/errors.js';
import { fenceWarning, transactionWarning } from '../../module/options-warnings.js';
import type { LockService } from '../../module/lock-service.js';
import { stateOf } from '../../module/service-state.js';
import { assertOnlyName, assertWrittenLabel, assertWrittenName } from './class-names.js';
import { copyMetadata } from './copy-metadata.js';
import { isFencedOutside } from './fenced-method.js';
import { assertNotHidden } from './field-functions.js';
import { classTemplates, usesRoot } from '../key-template.js';
import { compileKey, labelOf, type LockKey } from '../lock-key.js';
import { lockObservable, lockPromise, type LockedCall } from '../locked-call.js';
import { compileOptions, type MethodOptions } from './method-options.js';
import { watchForTransaction } from './outer-transaction.js';
import { isLeftToCall, watchAnswer } from '../interceptor/own-answer.js';
import { assertObject, injectService, serviceOf } from '../service/service-property.js';
import { handlerFaults, keysOr } from '../filter/request-fault.js';
import { assertSupported } from '../service/supported-kind.js';

/** What `@DistributedLock` has been given. */
export interface LockDeclaration {
  readonly key: LockKey<never[]>;
  readonly options: MethodOptions<never[]>;
}

/** Marks the wrappers of locked methods, and by their metadata what wraps these: a decorated class leaves them alone. */
const LOCKED = Symbol.for('nestjs-distributed-lock.locked-method');

export const isLockedMethod = (method: object): boolean => Reflect.hasOwnMetadata(LOCKED, method);

export const STATIC =
  'cannot lock a static method: Nest injects nothing into a class. Make it an instance method';

/**
 * Puts a wrapper in the method's place.
 * @throws LockConfigError when it cannot be locked, or the key or an option is wrong
 */
export function lockMethod(
  target: object,
  property: string | symbol | undefined,
  descriptor: PropertyDescriptor | undefined,
  { key, options: given }: LockDeclaration,
): void {
  const method = descriptor?.value as ((...args: unknown[]) => unknown) | undefined;
  const className = (typeof target === 'function' ? (target as { name: string }) : target.constructor).name;
  const name = String(property);
  const declared = `${className}.${name}`;
  if (property === undefined || descriptor === undefined || typeof method !== 'function') {
    throw misplaced(declared, 'goes on a method or a class');
  }
  if (typeof target === 'function') {
    throw misplaced(declared, STATIC);
  }
  if (isGenerator(method)) {
    throw misplaced(
      declared,
      'cannot lock a generator: it runs after its call has ended. Lock the method that iterates it, or return an Observable',
    );
  }
  const [makeKeys, options] = atDeclaration(declared, () => [
    compileKey(key, ROOTS),
    compileOptions(given, 'DistributedLockOptions', { label: labelOf(key) ?? declared }),
  ]);
  const isFromArguments = isMadeOfArguments(key);
  let insideTransaction = false;
  const service = injectService(target, options.instance, (injected, self) => {
    assertNotHidden(self, property, '@DistributedLock');
    assertClassNames({ service: injected, self, key, method: name, isLabelled: options.isLabelled });
    const kind = atDeclaration(declared, () => options.kindWith(injected));
    assertSupported(injected, kind, `@DistributedLock on ${declared}`);
    const warnings = stateOf(injected)?.bootWarnings;
    if (insideTransaction) warnings?.set(`transaction ${declared}`, transactionWarning(declared));
    if (isFencedOutside(method)) warnings?.set(`fence ${declared}`, fenceWarning(declared));
  });
  const emitted = declaredReturn(target, property);
  const returns = options.returns ?? emitted;

  const callOn = (self: object | undefined, args: unknown[]): LockedCall | undefined => {
    assertObject(self, `@DistributedLock on ${declared}`);
    const title = `${self.constructor.name}.${name}`;
    const injected = serviceOf(self, service, title);
    if (stateOf(injected)?.settings.enabled === false) return undefined;
    // The keys come last: an error after them would leave a Promise of keys whose rejection is not handled.
    const call = {
      service: injected,
      options: options.resolve(injected, args, self),
      title,
      isSoleAnswer: isLeftToCall(self.constructor as Type, property, args),
      unfinished: watchAnswer(self.constructor as Type, property, args),
    };
    const roots = { args, this: self, class: self.constructor.name, method: name };
    const keys = keysOr(
      () => makeKeys({ roots, args: args as never[] }),
      (error) =>
        isFromArguments ? faultOf(error, { type: self.constructor as Type, property, title }) : error,
    );
    return { ...call, keys };
  };
  const lock = returns === 'observable' ? lockObservable : lockPromise;
  // The caller expects a Promise of any value.
  const isAsync = emitted === 'promise' || isAsyncFunction(method);
  const wrapper = function (this: object | undefined, ...args: unknown[]) {
    const result = lock(
      () => callOn(this, args),
      () => method.apply(this, args),
    );
    return isAsync ? Promise.resolve(result) : result;
  };
  copyMetadata(method, wrapper);
  Reflect.defineMetadata(LOCKED, true, wrapper);
  descriptor.value = wrapper;
  watchForTransaction(descriptor, () => {
    insideTransaction = true;
  });
}

const faultOf = handlerFaults('DistributedLock');

/** The names that a path of a key starts with. */
const ROOTS = ['args', 'this', 'class', 'method'];

export const isMadeOfArguments = (key: LockKey<never[]>): boolean =>
  typeof key === 'function' || usesRoot(key, 'args', ROOTS);

export const isAsyncFunction = (method: object): boolean =>
  Object.prototype.toString.call(method) === '[object AsyncFunction]';

/** The body of a generator function runs only when the result of its call is read. */
export const isGenerator = (method: object): boolean =>
  Object.prototype.toString.call(method).includes('Generator');

/** The wrapper has to choose before the method has run, so the emitted type decides. */
export function declaredReturn(
  target: object,
  property: string | symbol,
): 'promise' | 'observable' | undefined {
  const type = Reflect.getMetadata('design:returntype', target, property) as
    { prototype?: { subscribe?: unknown; then?: unknown } } | undefined;
  // By shape: the application's rxjs may be another copy than the one of this package.
  if (typeof type?.prototype?.subscribe === 'function') return 'observable';
  return typeof type?.prototype?.then === 'function' ? 'promise' : undefined;
}

/** The places of a class's name in a lock: `$<class>` in its key, and the label that it has by default. */
interface ClassNames {
  readonly service: LockService;
  readonly self: object;
  readonly key: LockKey<never[]>;
  readonly method: string;
  /** There is no default label, as far as that is known at boot. */
  readonly isLabelled: boolean;
}

/** @throws LockConfigError for a name that a minifier or bundler has made, and for two classes of one name */
export function assertClassNames(
  { service, self, key, method, isLabelled }: ClassNames,
  decorator = '@DistributedLock',
): void {
  const type = self.constructor;
  const declared = `${decorator} on ${type.name}.${method}`;
  if (usesRoot(key, 'class', ROOTS)) {
    assertWrittenName(type, declared);
    assertOnlyName(service, type, classTemplates(key, ROOTS, method), declared);
  }
  if (typeof key === 'function' && !isLabelled) assertWrittenLabel(type, declared);
}

export const misplaced = (declared: string, rule: string, decorator = '@DistributedLock'): LockConfigError =>
  new LockConfigError(`${decorator} on ${declared}`, rule);

function atDeclaration<T>(declared: string, compile: () => T): T {
  try {
    return compile();
  } catch (error) {
    const { message } = error as Error;
    throw new LockConfigError(`@DistributedLock on ${declared}`, message);
  }
}
