import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { assertName } from '../../../lib/client/validation.js';
import { isLockConfigError, isLockKeyError, LockService } from '../../../lib/index.js';
import { RESERVED } from '../../../lib/store/lock-store.js';
import { assertPrefix } from '../../../lib/store/prefix.js';
import { CHARTER_KEY } from '../../../lib/stores/redis/commands/charter.js';
import { LockKeys } from '../../../lib/stores/redis/commands/keys.js';
import * as scripts from '../../../lib/stores/redis/commands/script.js';
import { COMMAND } from '../../../lib/stores/redis/connection/command-refused.js';
import { slotOf } from '../../../lib/stores/redis/connection/slots.js';
import * as sources from '../../../lib/stores/redis/scripts.generated.js';
import { serverOfAll } from '../../support/test-servers.js';
import { times } from '../../support/tier.js';

const server = serverOfAll({ args: ['--cluster-enabled', 'yes'] });

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
    { numRuns: times(100, 300) },
  );
});

/** Names and prefixes of the parts that could make one key look like another: braces, colons, and reserved words. */
const made = (maxLength: number) =>
  fc
    .array(
      fc.oneof(
        fc.constantFrom('{', '}', ':', 'a', '7', 'é'),
        fc.constantFrom('fence', 'queue', 'turn', 'quorum', 'lock:', '000000', 'game:{7}'),
        fc.constantFrom(RESERVED, '~', 'ndl:', `${RESERVED}turn`, `${RESERVED}fence{304172}`),
      ),
      { maxLength },
    )
    .map((parts) => parts.join(''));

const isAllowed = ({ client, own, name }: Stored): boolean => {
  try {
    for (const prefix of [client, own]) assertPrefix('keyPrefix', prefix);
    assertName(name);
    return true;
  } catch (error) {
    if (isLockKeyError(error) || isLockConfigError(error)) return false;
    throw error;
  }
};

interface Stored {
  readonly client: string;
  readonly own: string;
  readonly name: string;
}

const prefixes = fc.oneof(fc.constantFrom('', 'lock:', '{app}:', '{', 'a{}'), made(3), text(6));

const stored = fc
  .record({ client: prefixes, own: prefixes, name: fc.oneof(made(6), text(12)) })
  .filter((parts) => isAllowed(parts));

/** As the server has them. */
const keysOf = ({ client, own, name }: Stored) => {
  const { lock, fence, queue, done } = new LockKeys(name, own, client);
  return { lock: client + lock, derived: [fence, queue, done].map((key) => client + key) };
};

describe('the keys of one lock', () => {
  it('fall into one slot whatever the name and the prefixes are', async () => {
    await fc.assert(
      fc.asyncProperty(stored, async (one) => {
        const { lock, derived } = keysOf(one);
        const { shardChannel } = new LockKeys(one.name, one.own, one.client);
        const slots = await Promise.all([lock, ...derived, shardChannel].map(slot));
        expect(new Set(slots).size).toBe(1);
      }),
      { numRuns: times(100, 300) },
    );
  });

  it('are no other lock, and never those of another: for any names, prefixes, and ways to divide the prefixes', () => {
    fc.assert(
      fc.property(stored, stored, fc.nat(), fc.nat(), fc.nat(), (one, random, pick, m, n) => {
        // The other is often one that the keys of the first suggest, however its parts are divided.
        const { lock, derived } = keysOf(one);
        const suggested = [lock, ...derived, `${lock}:turn`, `{${lock}}`, lock.replace(/[{}]/g, '')];
        const key = suggested[pick % suggested.length] ?? '';
        const [from = 0, to = 0] = [m, n].map((at) => at % (key.length + 1)).sort((x, y) => x - y);
        const divided = { client: key.slice(0, from), own: key.slice(from, to), name: key.slice(to) };
        const other = isAllowed(divided) ? divided : random;

        const [a, b] = [keysOf(one), keysOf(other)];
        expect(new Set([a.lock, ...a.derived]).size).toBe(4);
        expect(
          [...a.derived, CHARTER_KEY].filter((derived) => derived === a.lock || derived === b.lock),
        ).toEqual([]);
        expect(a.derived).not.toContain(CHARTER_KEY);
        if (a.lock === b.lock) expect(a).toEqual(b);
        else expect(a.derived.filter((derived) => b.derived.includes(derived))).toEqual([]);
      }),
      { numRuns: times(500, 3_000) },
    );
  });

  it('begin with the key of the lock, so that a user that may touch what has the prefix may touch them', () => {
    const { lock, derived } = keysOf({ client: 'app:', own: 'lock:', name: 'a' });
    expect(lock).toBe('app:lock:a');
    for (const key of derived) expect(key.startsWith(`${lock}${RESERVED}`)).toBe(true);
    expect(new LockKeys('a', 'lock:', 'app:').channel).toBe('redisson_lock__channel:{app:lock:a}');
  });

  it('keep the channel of Redisson, but where a sharded message would get lost', () => {
    const channels = (name: string) => {
      const { channel, shardChannel } = new LockKeys(name, '', '');
      return [channel, shardChannel].map((full) => full.replace('redisson_lock__channel:', ''));
    };
    expect(channels('a')).toEqual(['{a}', '{a}']);
    expect(channels('a{b}c')).toEqual(['a{b}c', 'a{b}c']);
    expect(channels('a{b')).toEqual(['a{b', expect.stringMatching(/^a\{b\d{6}\}$/)]);
    expect(channels('a}b')).toEqual(['{a}b}', expect.stringMatching(/^a\}b\{\d{6}\}$/)]);
  });
});

describe('What would break the rule of keys', () => {
  it.each([RESERVED, `a${RESERVED}turn`, `${RESERVED}b`])(
    'a name such as %s is refused by every store',
    async (name) => {
      const locks = new LockService({ store: 'memory' });
      expect(() => locks.getLock(name)).toThrow(expect.objectContaining({ code: 'LOCK_KEY' }));
      await expect(locks.acquire(name)).rejects.toMatchObject({ code: 'LOCK_KEY', key: name });
      await expect(locks.inspect(name)).rejects.toMatchObject({ code: 'LOCK_KEY' });
      await locks.onApplicationShutdown();
    },
  );

  it.each([RESERVED, `app${RESERVED}`, 'app~', 'app~ndl', '\ud800'])(
    'a prefix such as %j is, at boot',
    (prefix) => {
      const config: unknown = expect.objectContaining({ code: 'LOCK_CONFIG' });
      expect(() => new LockService({ store: 'memory', keyPrefix: prefix })).toThrow(config);
      const connection = { port: 1, keyPrefix: prefix };
      expect(() => new LockService({ connection })).toThrow(config);
      expect(() => new LockService({ nodes: [{ port: 2 }, { port: 3 }, connection] })).toThrow(config);
      const cluster = { cluster: [{ port: 1 }], options: { keyPrefix: prefix } };
      expect(() => new LockService({ connection: cluster })).toThrow(config);
    },
  );
});

describe('the Lua scripts', () => {
  const folder = fileURLToPath(new URL('../../../lib/stores/redis/scripts/', import.meta.url));
  const files = readdirSync(folder).filter((file) => !file.endsWith('.include.lua'));
  const camelCase = (file: string) =>
    file.replace('.lua', '').replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
  const server = serverOfAll();

  it.each(files)('%s compiles, and is known by the digest that we compute', async (file) => {
    const { source, sha } = scripts[camelCase(file) as keyof typeof scripts];
    expect(await server.client().script('LOAD', source)).toBe(sha);
  });

  it.each(files)('%s says what its keys, arguments and replies are', (file) => {
    const [header = ''] = readFileSync(folder + file, 'utf8').split('\n\n');
    expect(header).toMatch(/^-- KEYS/m);
    expect(header).toMatch(/^-- ARGV/m);
    expect(header).toMatch(/^-- Returns/m);
  });

  it.each(files)('%s names one command a line at most: a refusal says only which line it was', (file) => {
    const { source } = scripts[camelCase(file) as keyof typeof scripts];
    const commands = new RegExp(COMMAND, 'g');
    expect(source.split('\n').filter((line) => (line.match(commands)?.length ?? 0) > 1)).toEqual([]);
  });

  it('are all in the build', () => {
    expect(Object.keys(sources).sort()).toEqual(files.map(camelCase).sort());
  });
});
