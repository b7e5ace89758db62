import 'reflect-metadata';
import type { Type } from '@nestjs/common';
import { LockConfigError } from '../../api/errors.js';
import { assertInstanceName } from '../../module/options-validation.js';
import type { LockService } from '../../module/lock-service.js';
import { stateOf } from '../../module/service-state.js';
import { checkedOnce, type OnceOptions } from '../../locks/once/once.js';
import { copyMetadata } from '../decorator/copy-metadata.js';
import { decoratedMethod } from '../election/leader-method.js';
import { handlerFaults, keysOr } from '../filter/request-fault.js';
import type { SkippedRefusal } from '../election/skippable-method.js';
import { assertNotHidden } from '../decorator/field-functions.js';
import { compileKey } from '../lock-key.js';
import { keysInTime } from '../locked-call.js';
import { assertClassNames, isMadeOfArguments } from '../decorator/locked-method.js';
import { locksPassThrough, runUnlocked } from '../decorator/pass-through.js';
import { assertObject, injectService, serviceOf } from '../service/service-property.js';

/** How often a method is to run over all processes. */
export interface OncePerOptions extends Omit<OnceOptions, 'signal'> {
  /** The name of the LockService to use. @default the unnamed one */
  instance?: string | undefined;
}

/**
 * A key template, or a function of the call's arguments with the called object as its `this`. It may give a Promise: the call
 * ends with LockKeyError if that takes longer than the `waitTime` of the decorator, if given, and that of the module.
 */
export type OnceKey = string | ((...args: never[]) => string | Promise<string>);

/** Fits methods that return a Promise, which may be one of undefined. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- of any method
export type OncePerDecorator = <Method extends (...args: any[]) => Promise<unknown>>(
  target: object,
  property: string | symbol,
  descriptor: SkippedRefusal<Method> extends never ? TypedPropertyDescriptor<Method> : SkippedRefusal<Method>,
) => void;

const ROOTS = ['args', 'this', 'class', 'method'];

const faultOf = handlerFaults('OncePer');

/**
 * Runs the method at most once in a period, over all processes; see {@link LockService.once}. A call that need not run gives
 * `undefined`, after the call that runs has succeeded. For `@Cron`, `@Interval` and `@OnEvent`, above or below them.
 * @param key a template as in `@DistributedLock`, such as `'report:$<args[0]>'`
 * @throws LockConfigError when it is applied, if the key or an option is wrong, or the method is a generator
 */
export function OncePer(key: OnceKey, options: OncePerOptions): OncePerDecorator {
  return (target, property, given) => {
    const descriptor = given as PropertyDescriptor;
    const { declared, method } = decoratedMethod('@OncePer', target, property, descriptor);
    const { makeKeys, instance, terms } = compiled(declared, key, options);
    const isFromArguments = isMadeOfArguments(key);
    const serviceKey = injectService(target, instance, (service, self) => {
      assertNotHidden(self, property, '@OncePer');
      assertClassNames({ service, self, key, method: String(property), isLabelled: true }, '@OncePer');
    });
    const wrapper = async function (this: object | undefined, ...args: unknown[]): Promise<unknown> {
      const run = () => method.apply(this, args);
      if (locksPassThrough()) return await run();
      assertObject(this, declared);
      const title = `${this.constructor.name}.${String(property)}`;
      const service: LockService = serviceOf(this, serviceKey, title, '@OncePer');
      if (stateOf(service)?.settings.enabled === false) return await runUnlocked(run);
      const roots = { args, this: this, class: this.constructor.name, method: String(property) };
      const type = this.constructor as Type;
      const made = keysOr(
        () => makeKeys({ roots, args: args as never[] }),
        (error) => (isFromArguments ? faultOf(error, { type, property, title }) : error),
      );
      const [[name = '', second], rest] = Array.isArray(made)
        ? [made, terms]
        : await keysInTime(made, { service, title }, terms);
      if (second !== undefined)
        throw new LockConfigError(declared, 'takes one key, and its template names several');
      // A call without a wait time of its own waits for another one without end.
      const result = await service.once(name, terms.waitTime === undefined ? terms : rest, run);
      return result.ran ? result.value : undefined;
    };
    copyMetadata(method, wrapper);
    descriptor.value = wrapper;
  };
}

function compiled(declared: string, key: OnceKey, options: OncePerOptions) {
  try {
    if (typeof key !== 'function' && typeof key !== 'string') {
      throw new LockConfigError('key', 'must be a template or a function', { value: key });
    }
    checkedOnce(options, 'the decorator', ['instance']);
    const { instance, ...terms } = options;
    assertInstanceName(instance, 'instance');
    return { makeKeys: compileKey(key, ROOTS), instance, terms };
  } catch (error) {
    throw new LockConfigError(declared, (error as Error).message);
  }
}
