import { randomUUID } from 'node:crypto';
import { FENCE_TTL, LockKeys } from '../../../../dist/stores/redis/commands/keys.js';
import * as scripts from '../../../../dist/stores/redis/commands/script.js';
import { connect, disconnect } from './ioredis.mjs';

/** The scripts of the plain lock and nothing around them: what its fence and its message cost in the server. */
export async function open({ urls, ttl }) {
  const clients = await connect(urls);
  const [client] = clients;
  const id = randomUUID();
  let sequence = 0;
  const runOn = (node, script, { lock, fence }, args) => node.evalsha(script.sha, 2, lock, fence, ...args);
  const run =
    clients.length === 1
      ? (script, keys, args) => runOn(client, script, keys, args)
      : (script, keys, args) => mostOf(clients.map((node) => runOn(node, script, keys, args)));
  for (const { source } of [scripts.acquire, scripts.release])
    await Promise.all(clients.map((node) => node.script('LOAD', source)));
  return {
    lock: async (name) => {
      const keys = new LockKeys(name, '', '');
      const owner = `${id}:${++sequence}`;
      const reply = await run(scripts.acquire, keys, [owner, ttl, 0, ttl + FENCE_TTL]);
      if (Array.isArray(reply)) throw new Error('busy');
      // Of several nodes, each learns the greatest token with the release.
      const token = clients.length === 1 ? 0 : reply;
      return () => run(scripts.release, keys, [owner, 'PUBLISH', keys.channel, token, FENCE_TTL]);
    },
    close: () => disconnect(clients),
  };
}

/** The greatest of what the first majority of the nodes has answered, or a refusal among it. */
const mostOf = (answers) =>
  new Promise((resolve, reject) => {
    let missing = Math.floor(answers.length / 2) + 1;
    let greatest = 0;
    for (const answer of answers)
      answer.then((reply) => {
        if (Array.isArray(reply)) resolve(reply);
        greatest = Math.max(greatest, reply);
        if (--missing === 0) resolve(greatest);
      }, reject);
  });
