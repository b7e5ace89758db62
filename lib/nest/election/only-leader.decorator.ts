import 'reflect-metadata';
import { stateOf } from '../../lock.service.state.js';
import { copyMetadata } from '../copy-metadata.js';
import { isAsyncFunction, declaredReturn } from '../locked-method.js';
import { locksPassThrough } from '../pass-through.js';
import { injectService, serviceOf } from '../service-property.js';
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
 * Runs calls of the method only where this process is the leader of that election; elsewhere the call gives `undefined`.
 * For `@Cron`, `@Interval` and `@OnEvent`, above or below them. The application campaigns from its bootstrap to its shutdown.
 *
 * A call that has begun is a part of the term: a leader that resigns or shuts down keeps the lock until its calls have
 * ended, at the latest until the deadline of the lease. A call that goes on after that has no signal; work that may take
 * longer belongs into {@link OnLeader}.
 * @param election the name of the election, see {@link LockService.getElection}
 * @throws LockConfigError where it is applied, when the name or an option is wrong
 */
export function OnlyLeader(election: string, options: LeaderOptions = {}): OnlyLeaderDecorator {
  return (target, property, given) => {
    const descriptor = given as PropertyDescriptor;
    const { declared, method } = decoratedMethod('@OnlyLeader', target, property, descriptor);
    assertLeaderOptions(declared, election, options);
    const key = injectService(target, options.instance, (service) => {
      campaignsOf(service).of(election, options);
    });
    const isAsync = isAsyncFunction(method) || declaredReturn(target, property) === 'promise';
    const wrapper = function (this: object, ...args: unknown[]): unknown {
      const run = () => method.apply(this, args);
      if (locksPassThrough()) return run();
      const service = serviceOf(this, key, `${this.constructor.name}.${String(property)}`, '@OnlyLeader');
      if (stateOf(service)?.settings.enabled === false) return run();
      const result = campaignsOf(service).of(election).call(run);
      return isAsync ? Promise.resolve(result) : result;
    };
    copyMetadata(method, wrapper);
    descriptor.value = wrapper;
  };
}
