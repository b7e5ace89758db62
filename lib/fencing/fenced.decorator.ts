import 'reflect-metadata';
import { LockConfigError } from '../api/errors.js';
import { copyMetadata } from '../nest/decorator/copy-metadata.js';
import { decoratedMethod } from '../nest/election/leader-method.js';
import { isLockedMethod } from '../nest/decorator/locked-method.js';
import { watchForTransaction } from '../nest/decorator/outer-transaction.js';
import { markFenced } from '../nest/decorator/fenced-method.js';
import type { Execute, FencingTable } from './fencing-table.js';

/** Matches methods that return a Promise. */
export type FencedDecorator<Self> = (
  target: Self & object,
  property: string | symbol,
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- of any method
  descriptor: TypedPropertyDescriptor<(...args: any[]) => Promise<any>>,
) => void;

/**
 * Calls {@link FencingTable.guard} before the method, as the first statement of the transaction that a decorator such
 * as `@Transactional()` opens. Place it below that decorator, and that decorator below `@DistributedLock`:
 *
 * ```ts
 * @DistributedLock('order:$<args[0]>')
 * @Transactional()
 * @Fenced(fences, (orders: Orders) => typeorm(orders.host.tx))
 * async pay(orderId: string) {}
 * ```
 *
 * If a method with `@DistributedLock` has no transaction decorator above this one, the service warns at boot with the
 * code `fence-outside-transaction`.
 * @param execute an adapter with the present transaction of the object
 * @throws LockConfigError at its use, if it is above `@DistributedLock`
 */
export function Fenced<Self = unknown>(
  fences: FencingTable,
  execute: (self: Self) => Execute,
): FencedDecorator<Self> {
  return (target, property, descriptor: PropertyDescriptor) => {
    const { declared, method } = decoratedMethod('@Fenced', target, property, descriptor);
    if (isLockedMethod(method)) {
      throw new LockConfigError(
        declared,
        'stands above @DistributedLock, so that it runs without a lock. Write it below',
      );
    }
    const wrapper = async function (this: Self, ...args: unknown[]): Promise<unknown> {
      await fences.guard((sql, parameters) => execute(this)(sql, parameters));
      return await method.apply(this, args);
    };
    copyMetadata(method, wrapper);
    const mark = markFenced(wrapper);
    descriptor.value = wrapper;
    watchForTransaction(descriptor, () => {
      mark.insideTransaction = true;
    });
  };
}
