import { randomUUID } from 'node:crypto';
import { FENCE_TTL, keysOfLock } from '../../../../dist/stores/redis/commands/keys.js';
import { connect, disconnect } from './ioredis.mjs';

/**
 * The commands that several plain locks take in any case, in one script each: of a hash with an end, as Redisson has it, of a
 * fencing token that outlives it, and of a message for each that is freed. It checks nothing that is not needed while nothing
 * goes wrong.
 */
const TAKE = `
local locks = #KEYS / 2
if redis.call('EXISTS', unpack(KEYS, 1, locks)) > 0 then return 0 end
redis.call('MGET', unpack(KEYS, locks + 1, 2 * locks))
local time = redis.call('TIME')
local token = time[1] .. string.sub('00000' .. time[2], -6)
local fence = token .. ' ' .. ARGV[1]
for i = 1, locks do
  redis.call('SET', KEYS[locks + i], fence, 'PX', ARGV[3])
  redis.call('HSET', KEYS[i], ARGV[1], '1')
  redis.call('PEXPIRE', KEYS[i], ARGV[2])
end
return token`;
const FREE = `
for i = 1, #KEYS do
  redis.call('HDEL', KEYS[i], ARGV[1])
  redis.call('PUBLISH', 'redisson_lock__channel:{' .. KEYS[i] .. '}', '0')
end
return 1`;

export async function open({ urls, ttl }) {
  const clients = await connect(urls);
  const [client] = clients;
  const id = randomUUID();
  let sequence = 0;
  const [take, free] = await Promise.all([TAKE, FREE].map((source) => client.script('LOAD', source)));
  return {
    lockAll: async (names) => {
      const keys = names.map((name) => keysOfLock(name, '', ''));
      const locks = keys.map(({ lock }) => lock);
      const fences = keys.map(({ fence }) => fence);
      const owner = `${id}:${++sequence}`;
      const token = await client.evalsha(
        take,
        2 * locks.length,
        ...locks,
        ...fences,
        owner,
        ttl,
        ttl + FENCE_TTL,
      );
      if (token === 0) throw new Error('busy');
      return () => client.evalsha(free, locks.length, ...locks, owner);
    },
    close: () => disconnect(clients),
  };
}
