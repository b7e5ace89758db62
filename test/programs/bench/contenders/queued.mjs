import { randomUUID } from 'node:crypto';
import { FENCE_TTL, LockKeys } from '../../../../dist/stores/redis/commands/keys.js';
import { QUEUE_CHANNEL } from '../../../../dist/stores/redis/messages/queue-protocol.js';
import * as scripts from '../../../../dist/stores/redis/commands/script.js';
import { connect, disconnect } from './ioredis.mjs';

/** How each kind is asked for and given up, and whether that is granted at once. */
const KINDS = {
  lock: {
    acquire: [scripts.acquire, (owner, ttl) => [owner, ttl, 0, ttl + FENCE_TTL, 0, '']],
    release: [scripts.release, (owner, ttl, channel) => [owner, 'PUBLISH', channel, 0, FENCE_TTL, 0, ttl]],
    isGranted: (reply) => !Array.isArray(reply),
  },
  fair: {
    acquire: [scripts.queueAcquire, (owner, ttl) => [owner, 'x', 'fair', 1, ttl, 1, 0, '', FENCE_TTL, '']],
    release: [scripts.queueRelease, (owner, ttl) => [owner, 'x', 'fair', 1, 0, ttl, FENCE_TTL, '']],
    isGranted: ([outcome]) => outcome === 1,
  },
};

/**
 * The scripts of a lock with a queue and the message by which they hand it over, and nothing around them. The message is
 * taken for the grant as it is.
 */
export async function open({ urls, ttl, kind }) {
  const clients = await connect([...urls, ...urls]);
  const [client, listener] = clients;
  const id = randomUUID();
  const { acquire, release, isGranted } = KINDS[kind];
  const messages = new Map();
  listener.on('message', (_, text) => {
    const [type, owner] = text.split(' ');
    if (type === 'granted') messages.get(owner)?.();
  });
  await listener.subscribe(QUEUE_CHANNEL + id);
  for (const [{ source }] of [acquire, release]) await client.script('LOAD', source);
  const run = ([script, args], { queued }, ...given) =>
    client.evalsha(script.sha, queued.length, ...queued, ...args(...given));
  let sequence = 0;
  return {
    lock: async (name) => {
      const keys = new LockKeys(name, '', '');
      const owner = `${id}:${++sequence}`;
      const granted = new Promise((resolve) => messages.set(owner, resolve));
      if (!isGranted(await run(acquire, keys, owner, ttl))) await granted;
      messages.delete(owner);
      return () => run(release, keys, owner, ttl, keys.channel);
    },
    close: () => disconnect(clients),
  };
}
