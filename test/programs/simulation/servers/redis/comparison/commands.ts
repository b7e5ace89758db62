import { CHANNELS, type Maker, type Step, word } from './step.js';

type Make = (maker: Maker) => string[];

/** Some are texts, some hashes, some sorted sets, by what comes first; the locks are among them. */
const key = word('k', 'l', 'm', 'a', 'b', 'a~fence', 'b~queue');
const field = word('f', 'g', 'one:1', '');
const number = word('0', '1', '-1', '5', '100', '2500', '1.5', 'x', '', '1e3', ' 1', '+1', '90071992547');
const score = word(
  '0',
  '1',
  '-1.5',
  '3e2',
  '1700000000000000',
  'inf',
  '-inf',
  '+inf',
  '0.1',
  'nan',
  'x',
  '1e21',
);
const text = word('', 'v', 'a b', '12', '\0\xff', '17 one:1', '5 one:1 fair 1');
const anyCase = word('GET', 'get', 'NX', 'XX', 'KEEPTTL', 'keepttl');
const end = word('EX', 'PX', 'px', 'PXAT', 'EXAT');

const endAt: Make = (maker) => {
  const way = end(maker);
  if (!way.endsWith('AT')) return [way, number(maker)];
  const ms = Math.floor(maker.at / 1_000) + maker.random.between(-50, 3_000);
  return [way, String(way === 'PXAT' ? ms : Math.floor(ms / 1_000))];
};

const setWords: Make = (maker) =>
  Array.from({ length: maker.random.between(0, 2) }, () =>
    maker.random.next() < 0.5 ? [anyCase(maker)] : endAt(maker),
  ).flat();

const rangeWords: Make = (maker) => maker.random.some(['BYSCORE', 'REV', 'WITHSCORES', 'rev', 'withscores']);
const bound: Make = (maker) => [maker.random.pick([score(maker), `(${score(maker)}`, number(maker)])];
const addWords: Make = (maker) => maker.random.some(['NX', 'XX', 'CH']);
const keys: Make = (maker) => Array.from({ length: maker.random.between(1, 3) }, () => key(maker));

const COMMANDS: Readonly<Record<string, Make>> = {
  GET: (maker) => [key(maker)],
  SET: (maker) => [key(maker), text(maker), ...setWords(maker)],
  MGET: keys,
  DEL: keys,
  UNLINK: keys,
  EXISTS: keys,
  TYPE: (maker) => [key(maker)],
  PTTL: (maker) => [key(maker)],
  PEXPIRE: (maker) => [key(maker), number(maker)],
  PEXPIREAT: (maker) => [key(maker), endAt(maker)[1]!],
  PERSIST: (maker) => [key(maker)],
  HSET: (maker) => [key(maker), field(maker), text(maker), ...maker.random.some(['f', 'w', 'g'])],
  HGET: (maker) => [key(maker), field(maker)],
  HDEL: (maker) => [key(maker), field(maker), ...maker.random.some(['f', 'g'])],
  HEXISTS: (maker) => [key(maker), field(maker)],
  HLEN: (maker) => [key(maker)],
  HGETALL: (maker) => [key(maker)],
  ZADD: (maker) => [
    key(maker),
    ...addWords(maker),
    score(maker),
    field(maker),
    ...maker.random.some(['3', 'f']),
  ],
  ZREM: (maker) => [key(maker), field(maker), ...maker.random.some(['f', 'g'])],
  ZSCORE: (maker) => [key(maker), field(maker)],
  ZRANK: (maker) => [key(maker), field(maker)],
  ZCARD: (maker) => [key(maker)],
  ZRANGE: (maker) => [key(maker), ...bound(maker), ...bound(maker), ...rangeWords(maker)],
  ZREVRANGE: (maker) => [key(maker), number(maker), number(maker), ...maker.random.some(['WITHSCORES'])],
  ZREMRANGEBYSCORE: (maker) => [key(maker), ...bound(maker), ...bound(maker)],
  PUBLISH: (maker) => [maker.random.pick(CHANNELS), text(maker)],
  SPUBLISH: (maker) => [maker.random.pick(CHANNELS), text(maker)],
  PUBSUB: (maker) => [word('NUMSUB', 'numsub', 'SHARDNUMSUB')(maker), ...maker.random.some(CHANNELS)],
  PING: (maker) => maker.random.some(['hello']),
  ECHO: (maker) => [text(maker)],
  TIME: () => [],
  CLUSTER: () => ['MYID'],
  SELECT: () => ['0'],
  NOSUCH: keys,
};

const NAMES = Object.keys(COMMANDS);

/** A command with arguments that may be wrong, or too few. */
function anyCommand(maker: Maker): string[] {
  const { random } = maker;
  const name = random.pick(NAMES);
  const args = COMMANDS[name]!(maker);
  const few = random.next() < 0.03 && name !== 'PUBSUB' ? args.slice(1) : args;
  return [random.next() < 0.9 ? name : name.toLowerCase(), ...few];
}

/** What scripts see of an answer, and clients of what a script returns. */
const SNIPPETS = [
  'return redis.call(unpack(ARGV))',
  'local reply = redis.call(unpack(ARGV))\nreturn reply',
  'return { redis.pcall(unpack(ARGV)), 1 }',
  'local r = redis.pcall(unpack(ARGV)) return { type(r), type(r) == "table" and (r.err or r.ok or #r) or tostring(r) }',
  'local done, r = pcall(redis.call, unpack(ARGV)) return { tostring(done), type(r) == "table" and r.err or type(r) }',
  'return { 1.9, -1.9, "x", true, false, nil, 3 }',
  'return { { ok = "FINE" }, { err = "BAD luck" }, {}, { { 1 } } }',
  'return redis.error_reply("BAD luck")',
  'return redis.error_reply("luck")',
  'return redis.status_reply("FINE")',
  'return { #KEYS, #ARGV, KEYS[1], ARGV[1] }',
  'return { string.format("%.0f %d", 1700000000000001, 7), tostring(1e15), tostring(0.1), 2 ^ 53 }',
  'redis.call("ZADD", KEYS[1], 1700000000000001 + 0.5, "a") return redis.call("ZRANGE", KEYS[1], 0, -1, "WITHSCORES")',
  'redis.call("SET", KEYS[1], 1e20) return redis.call("GET", KEYS[1])',
  'redis.call("SET", KEYS[1], 1 / 3) return { redis.call("GET", KEYS[1]), redis.call("PTTL", KEYS[1]) }',
  'local t = {} .. "a"\nreturn t',
  'return nothing',
  'something = 1',
  'error("on purpose")',
  'error({ err = "BAD thing" })',
  'return redis.call("NOSUCH", "a")',
  'return redis.call("GET")',
  'return redis.call("GET", {})',
  'return redis.call("SUBSCRIBE", "a")',
  'return cjson.decode(ARGV[1])',
  'return redis.acl_check_cmd("HDEL", KEYS[1], "") and 1 or 0',
  'this is no Lua',
];

export function commandStep(maker: Maker): Step {
  const { random, at } = maker;
  const command = anyCommand(maker);
  if (random.next() < 0.7) return { connection: 0, at, command };
  const snippet = random.pick(SNIPPETS);
  const args = snippet.includes('cjson') ? ['[1,"\\u00fc x",[2.5,{"a":true}]]'] : command;
  return { connection: 0, at, command: ['EVAL', snippet, '1', key(maker), ...args] };
}
