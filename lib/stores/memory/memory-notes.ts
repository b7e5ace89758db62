import { now } from '../../runtime/clock.js';
import type { StoreWaits } from '../../store/lock-store.js';
import { SweptMap } from './swept-map.js';

/** Notes between the clients of one store, with an end. */
export function memoryNotes(): StoreWaits {
  const notes = new SweptMap<{ readonly note: string; readonly until: number }>(
    ({ until }) => until <= now(),
  );
  return {
    keep: (client, note, time) => {
      notes.set(client, { note, until: now() + time });
      return Promise.resolve();
    },
    find: (client) => {
      const { note, until = 0 } = notes.get(client) ?? {};
      return Promise.resolve(until > now() ? note : undefined);
    },
    forget: (client) => {
      notes.delete(client);
      return Promise.resolve();
    },
  };
}
