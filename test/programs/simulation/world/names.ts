import type { AsyncLocalStorage } from 'node:async_hooks';
import type { Actor, SimulatedTimer } from './actor.js';
import type { Kept } from './exchangeable.js';

/** Names that code of a process finds in place of those of the real one. */
export const NAMES = [
  'globalThis',
  'process',
  'performance',
  'Date',
  'Math',
  'setTimeout',
  'clearTimeout',
  'setInterval',
  'clearInterval',
  'setImmediate',
  'clearImmediate',
] as const;

type Names = Record<(typeof NAMES)[number], unknown>;

/** An instance of the package, as its code finds it. */
export interface Instance {
  /** The process that runs now. */
  actor: Actor;
  readonly kept: Kept[];
}

/** Where the package finds the storage of its scopes. */
const SCOPES = Symbol.for('nestjs-distributed-lock.scopes');

/** What the package of a test keeps under symbols, such as its clock, is not that of a process. */
const REAL = new Proxy(globalThis, {
  get: (target, key) => (typeof key === 'symbol' ? undefined : (Reflect.get(target, key) as unknown)),
});

/** @param scopes where the package keeps its scopes */
export function namesOf(
  instance: Instance,
  scopes: Pick<AsyncLocalStorage<unknown>, 'run' | 'getStore'>,
): Names {
  class SimulatedDate extends Date {
    constructor(...given: readonly unknown[]) {
      if (given.length === 0) super(instance.actor.wall());
      else super(...(given as []));
    }
    static override now(): number {
      return instance.actor.wall();
    }
  }
  const clearTimer = (timer: SimulatedTimer | undefined) => {
    instance.actor.clearTimer(timer);
  };
  const own = {
    performance: {
      now: () => instance.actor.look(),
      get timeOrigin() {
        return instance.actor.timeOrigin;
      },
    },
    Date: SimulatedDate,
    Math: Object.assign(Object.create(Math) as object, { random: () => instance.actor.random.next() }),
    setTimeout: (callback: () => void, time?: number) => instance.actor.setTimer(callback, time),
    clearTimeout: clearTimer,
    setInterval: (callback: () => void, time: number) => instance.actor.setRepeatingTimer(callback, time),
    clearInterval: clearTimer,
    setImmediate: (callback: () => void) => instance.actor.afterInput(callback),
    clearImmediate: clearTimer,
    process: Object.create(process, { pid: { get: () => instance.actor.index } }) as object,
  };
  // Defined and not assigned: an assignment would reach the real ones, which are accessors.
  const given = { ...own, simulatedInstance: instance, [SCOPES]: scopes };
  const global = Object.create(REAL, Object.getOwnPropertyDescriptors(given)) as object;
  instance.kept.push({
    renew: () => {
      for (const symbol of Object.getOwnPropertySymbols(global))
        if (symbol !== SCOPES) Reflect.deleteProperty(global, symbol);
    },
    take: () => [],
    put: () => undefined,
  });
  return { ...own, globalThis: global };
}
