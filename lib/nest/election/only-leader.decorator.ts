import 'reflect-metadata';
import { stateOf } from '../../module/service-state.js';
import { copyMetadata } from '../decorator/copy-metadata.js';
import { assertNotHidden } from '../decorator/field-functions.js';
import { isAsyncFunction, declaredReturn } from '../decorator/locked-method.js';
import { locksPassThrough } from '../decorator/pass-through.js';
import { assertObject, injectService, serviceOf } from '../service/service-property.js';
import { campaignsOf } from './campaigns.js';
import { assertLeaderOptions, decoratedMethod, type LeaderOptions } from './leader-method.js';
import type { SkippableMethod, SkippedRefusal } from './skippable-method.js';

/** Fits methods whose result may be undefined, or a Promise of that. */
export type OnlyLeaderDecorator = <Method extends SkippableMethod>(
  target: object,
  property: string | symbol,
  descriptor: SkippedRefusal<Method> extends never ? TypedPropertyDescriptor<Method> : SkippedRefusal<Method>,
) => void;

/**
 * Runs calls of the method only if this process is the leader of that election; elsewhere the call gives `undefined`.
 * For `@Cron`, `@Interval` and `@OnEvent`, above or below them. The application campaigns from its bootstrap to its shutdown.
 *
 * A call that has begun is a part of the term: a leader that resigns or shuts down keeps the lock until its calls have
 * ended, at the latest until the deadline of the lease. A call that goes on after that has no signal; work that may take
 * longer belongs into {@link OnLeader}.
 * @param election the name of the election, see {@link LockService.getElection}
 * @throws LockConfigError when it is applied, if the name or an option is wrong, or the method is a generator
 */
export function OnlyLeader(election: string, options: LeaderOptions = {}): OnlyLeaderDecorator {
  return (target, property, given) => {
    const descriptor = given as PropertyDescriptor;
    const { declared, method } = decoratedMethod('@OnlyLeader', target, property, descriptor);
    assertLeaderOptions(declared, election, options);
    const key = injectService(target, options.instance, (service, self) => {
      assertNotHidden(self, property, '@OnlyLeader');
      campaignsOf(service).of(election, options);
    });
    const isAsync = isAsyncFunction(method) || declaredReturn(target, property) === 'promise';
    const callOn = (self: object | undefined, args: unknown[]): unknown => {
      const run = () => method.apply(self, args);
      if (locksPassThrough()) return run();
      assertObject(self, declared);
      const service = serviceOf(self, key, `${self.constructor.name}.${String(property)}`, '@OnlyLeader');
      if (stateOf(service)?.settings.enabled === false) return run();
      return campaignsOf(service).of(election).call(run);
    };
    // A caller of a method that gives a Promise handles its errors as rejections.
    const wrapper = isAsync
      ? async function (this: object | undefined, ...args: unknown[]): Promise<unknown> {
          return await callOn(this, args);
        }
      : function (this: object | undefined, ...args: unknown[]): unknown {
          return callOn(this, args);
        };
    copyMetadata(method, wrapper);
    descriptor.value = wrapper;
  };
}
