import { type LockStore, MemoryLockStore } from '../../lib/index.js';
import type { Subscription } from '../../lib/store/index.js';
import type { StorePlace } from '../../lib/testing/describe-lock-store.js';
import type { Bug } from './planted-bugs.js';

/** One client of a memory store, as a process would be: what it has subscribed to ends with it. */
function clientOf(store: MemoryLockStore, bug: Bug): LockStore {
  const subscriptions = new Set<Subscription>();
  const kept = async (opening: Promise<Subscription>) => {
    const subscription = await opening;
    subscriptions.add(subscription);
    return subscription;
  };
  const members = (own: Partial<LockStore>, of: LockStore): LockStore =>
    new Proxy(of, {
      get: (target, member) => {
        if (member in own) return Reflect.get(own, member) as unknown;
        const value: unknown = Reflect.get(target, member);
        return typeof value === 'function' ? (value.bind(target) as unknown) : value;
      },
    });
  const client = members(
    {
      subscribeToReleases: (name, onWake) => kept(store.subscribeToReleases(name, onWake)),
      queues: {
        ...store.queues,
        subscribe: (name, onMessage) => kept(store.queues.subscribe(name, onMessage)),
      },
      close: () => {
        for (const subscription of subscriptions) subscription.close();
        return Promise.resolve();
      },
    },
    store,
  );
  return members(bug(client), client);
}

/** Where clients of one memory store come from, each with the bug. */
export const placeWith = (bug: Bug) => (): Promise<StorePlace> => {
  const store = new MemoryLockStore();
  return Promise.resolve({ open: () => clientOf(store, bug), close: () => Promise.resolve() });
};
