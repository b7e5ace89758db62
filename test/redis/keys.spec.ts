import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { keysOf } from '../../lib/stores/redis/keys.js';
import { replyCode } from '../../lib/stores/redis/redis-errors.js';
import { RedisServer } from '../support/redis-server.js';

let server: RedisServer;

beforeAll(async () => {
  server = await RedisServer.start({ args: ['--cluster-enabled', 'yes'] });
});

afterAll(() => server.stop());

describe('the keys of one lock', () => {
  it.each(['order:7', 'a{b}c', '{tag}', 'a{b', 'x{y}{z}', '{'])('%s fall into one slot', async (name) => {
    const { lock, fence, queue } = keysOf(name, 'lock:', '');
    const slots = [lock, fence, queue].map((key) => server.client().cluster('KEYSLOT', key));
    expect(new Set(await Promise.all(slots)).size).toBe(1);
  });

  it('begin with the prefix that the client puts before them by itself', () => {
    const { lock, fence, channel } = keysOf('a', 'lock:', 'app:');
    expect([lock, fence]).toEqual(['lock:a', '{app:lock:a}:fence']);
    expect(channel).toBe('redisson_lock__channel:{app:lock:a}');
  });
});

it.each([
  ['OOM command not allowed', 'OOM'],
  [
    'ERR Error running script (call to f_1): @user_script:3: @user_script: 3: -OOM command not allowed',
    'OOM',
  ],
  ['ERR Error running script (call to f_1): @user_script:3: WRONGTYPE Operation against a key', 'WRONGTYPE'],
  ['ERR something else', 'ERR'],
])('the code of "%s" is %s', (message, code) => {
  const error = Object.assign(new Error(message), { name: 'ReplyError' });
  expect(replyCode(error)).toBe(code);
});
