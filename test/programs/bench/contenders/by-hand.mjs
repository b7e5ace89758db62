import { randomUUID } from 'node:crypto';
import { FENCE_TTL, LockKeys } from '../../../../dist/stores/redis/keys.js';
import * as scripts from '../../../../dist/stores/redis/script.js';
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
      : (script, keys, args) => firstOfMost(clients.map((node) => runOn(node, script, keys, args)));
  for (const { source } of [scripts.acquire, scripts.release])
    await Promise.all(clients.map((node) => node.script('LOAD', source)));
  return {
    lock: async (name) => {
      const keys = new LockKeys(name, '', '');
      const owner = `${id}:${++sequence}`;
      if (Array.isArray(await run(scripts.acquire, keys, [owner, ttl, 0, ttl + FENCE_TTL])))
        throw new Error('busy');
      return () => run(scripts.release, keys, [owner, 'PUBLISH', keys.channel, 0, FENCE_TTL]);
    },
    close: () => disconnect(clients),
  };
}

/** What a majority of the nodes has answered: the answer that makes it one. */
const firstOfMost = (answers) =>
  new Promise((resolve, reject) => {
    let missing = Math.floor(answers.length / 2) + 1;
    for (const answer of answers)
      answer.then((reply) => {
        if (--missing === 0) resolve(reply);
      }, reject);
  });
