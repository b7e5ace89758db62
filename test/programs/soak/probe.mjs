// Preloaded into a shop. Counts what the process has open when the program asks, after a collection of garbage.
import { setTimeout } from 'node:timers/promises';
import { Redis } from 'ioredis';

/** Every client that is not collected yet. A client that has ended and is kept by mistake counts too. */
const clients = new Set();
const known = new WeakSet();
const { connect } = Redis.prototype;
Redis.prototype.connect = function (...args) {
  if (!known.has(this)) clients.add(new WeakRef(this));
  known.add(this);
  return connect.apply(this, args);
};

const MB = 2 ** 20;
const unexpected = [];
process.on('unhandledRejection', (reason) =>
  unexpected.push(`unhandled rejection: ${reason?.stack ?? reason}`),
);
process.on('warning', ({ name, message }) => {
  if (name === 'MaxListenersExceededWarning') unexpected.push(message);
});

const listenersOf = (emitter) =>
  emitter.eventNames().reduce((sum, name) => sum + emitter.listenerCount(name), 0);

function look() {
  for (const reference of clients) if (reference.deref() === undefined) clients.delete(reference);
  const emitters = new Set([process, ...[...clients].map((reference) => reference.deref())]);
  // The sockets with their listeners. Node has no other way to them.
  for (const handle of process._getActiveHandles()) if (handle.eventNames !== undefined) emitters.add(handle);
  const open = process.getActiveResourcesInfo();
  const { heapUsed, rss } = process.memoryUsage();
  return {
    heap: heapUsed / MB,
    rss: rss / MB,
    sockets: open.filter((kind) => kind === 'TCPSocketWrap').length,
    timers: open.filter((kind) => kind === 'Timeout').length,
    resources: open.length,
    listeners: [...emitters].reduce((sum, emitter) => sum + listenersOf(emitter), 0),
  };
}

process.on('message', () => {
  void (async () => {
    // A weak reference that was read lives until the end of its turn, so the second collection finds more.
    globalThis.gc();
    await setTimeout(20);
    globalThis.gc();
    process.send({ figures: look(), unexpected: unexpected.splice(0) });
  })();
});
