import { Redis, type Cluster } from 'ioredis';

type Listener = (...details: readonly unknown[]) => void;

interface Relay {
  readonly listeners: Set<Listener>;
  readonly listener: Listener;
}

/** Of all copies of this package in the process: services of two copies may share a client. */
const RELAYS = Symbol.for('nestjs-distributed-lock.client-events');
type Relays = WeakMap<Redis | Cluster, Map<string, Relay>>;
const shared = globalThis as { [RELAYS]?: Relays | undefined };
const relays = (shared[RELAYS] ??= new WeakMap());

/**
 * Listens to the events of a client. All services of a process that share a client share one listener of each event: with
 * eleven listeners Node would warn of a leak.
 * @param owned the client belongs to this library, which reports its errors
 * @returns a function that stops it
 */
export function listen(
  client: Redis | Cluster,
  listeners: Readonly<Record<string, Listener>>,
  owned = false,
): () => void {
  const events = relays.get(client) ?? new Map<string, Relay>();
  relays.set(client, events);
  for (const [event, listener] of Object.entries(listeners)) {
    const relay = events.get(event) ?? relayOf(client, event, owned);
    events.set(event, relay);
    relay.listeners.add(listener);
  }
  return () => {
    for (const [event, listener] of Object.entries(listeners)) {
      const relay = events.get(event);
      if (relay?.listeners.delete(listener) !== true || relay.listeners.size > 0) continue;
      events.delete(event);
      client.off(event, relay.listener);
    }
  };
}

function relayOf(client: Redis | Cluster, event: string, owned: boolean): Relay {
  const listeners = new Set<Listener>();
  const listener: Listener = (...details) => {
    if (event === 'error' && !owned) leaveUnheard(client, listener, details[0]);
    for (const each of [...listeners]) each(...details);
  };
  client.on(event, listener);
  return { listeners, listener };
}

/**
 * ioredis prints an error that has no listener. The application chooses whether it listens to its own client. So ioredis
 * gets the chance to print an error that only this library listens to.
 */
function leaveUnheard(client: Redis | Cluster, listener: Listener, error: unknown): void {
  if (client.listenerCount('error') > 1) return;
  client.off('error', listener);
  Redis.prototype.silentEmit.call(client, 'error', error);
  client.on('error', listener);
}
