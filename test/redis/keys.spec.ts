import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { keysOf } from '../../lib/stores/redis/keys.js';
import { replyCode } from '../../lib/stores/redis/redis-errors.js';
import { slotOf } from '../../lib/stores/redis/slots.js';
import { RedisServer } from '../support/redis-server.js';

let server: RedisServer;

beforeAll(async () => {
  server = await RedisServer.start({ args: ['--cluster-enabled', 'yes'] });
});

afterAll(() => server.stop());

/** Text that plays with braces, and any other. */
const text = (maxLength: number) =>
  fc.oneof(
    fc.string({ unit: fc.constantFrom('{', '}', 'a', 'b', ':', 'é'), maxLength }),
    fc.string({ unit: 'binary', maxLength }),
  );

const slot = (key: string) => server.client().cluster('KEYSLOT', key);

it('the slot of a key is the one that the server names', async () => {
  await fc.assert(
    fc.asyncProperty(text(40), async (key) => {
      expect(slotOf(key)).toBe(await slot(key));
    }),
    { numRuns: 300 },
  );
});

describe('the keys of one lock', () => {
  it.each([
    'order:7',
    'a{b}c',
    '{tag}',
    'a{b',
    'x{y}{z}',
    '{',
    'a}b',
    '{}',
    '}{',
    '{}{a}',
    'x'.repeat(1_024),
  ])('%s fall into one slot', async (name) => {
    const { lock, fence, queue, shardChannel } = keysOf(name, 'lock:', '');
    const slots = await Promise.all([lock, fence, queue, shardChannel].map(slot));
    expect(new Set(slots).size).toBe(1);
  });

  it('fall into one slot whatever the name and the prefixes are, and are four', async () => {
    // An empty name is refused, and a client whose prefix has an empty hash tag.
    const names = text(12).filter((name) => name !== '');
    const clientPrefixes = text(6).filter((prefix) => !prefix.includes('{}'));
    await fc.assert(
      fc.asyncProperty(names, text(6), clientPrefixes, async (name, keyPrefix, clientPrefix) => {
        const { lock, fence, queue, shardChannel } = keysOf(name, keyPrefix, clientPrefix);
        const stored = [lock, fence, queue].map((key) => clientPrefix + key);
        const slots = await Promise.all([...stored, shardChannel].map(slot));
        expect(new Set(slots).size).toBe(1);
        expect(new Set([...stored, shardChannel]).size).toBe(4);
      }),
      { numRuns: 150 },
    );
  }, 60_000);

  it('are those of one lock only', () => {
    fc.assert(
      fc.property(text(12), text(12), (one, other) => {
        fc.pre(one !== other);
        const [a, b] = [keysOf(one, 'lock:', ''), keysOf(other, 'lock:', '')];
        expect(Object.values(a).filter((key) => Object.values(b).includes(key))).toEqual([]);
      }),
    );
  });

  it('keep the channel of Redisson, but where a sharded message would get lost', () => {
    expect(keysOf('a', '', '')).toMatchObject({ shardChannel: 'redisson_lock__channel:{a}' });
    expect(keysOf('a{b}c', '', '')).toMatchObject({ shardChannel: 'redisson_lock__channel:a{b}c' });
    expect(keysOf('a{b', '', '')).toMatchObject({
      channel: 'redisson_lock__channel:a{b',
      shardChannel: 'redisson_lock__channel:{a{b}',
    });
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
