import * as scripts from '../../../../../../lib/stores/redis/commands/script.js';
import { CHANNELS, type Maker, OWNERS, type Step, word } from './step.js';

const LOCKS = ['a', 'b'];

const keysOf = (name: string): string[] => [name, `${name}~fence`, `${name}~queue`];
const lock = ({ random }: Maker): string => random.pick(LOCKS);
const owner = ({ random }: Maker): string => random.pick(OWNERS);
const lease = word('1', '80', '1500', '3000');
const mostlyZero = word('0', '0', '0', '60');
const kept = word('1000', '3600000');
const channel = ({ random }: Maker): string => random.pick(CHANNELS);
const publishing = word('PUBLISH', 'PUBLISH', 'SPUBLISH');
const kinds = [
  ['fair', '1', 'x'],
  ['read-write', '1000000000', 'x'],
  ['read-write', '1000000000', 's'],
  ['semaphore', '2', 's'],
] as const;

/** A moment near the present one: of an arrival, or the least token. */
const moment = ({ random, at }: Maker): string =>
  random.next() < 0.7 ? '0' : String(at + random.between(-3_000_000, 3_000_000));

interface Call {
  readonly keys: readonly string[];
  readonly args: readonly string[];
}
type Make = (maker: Maker) => Call;

const made = (keys: readonly string[], ...args: readonly string[]): Call => ({ keys, args });

const several = (maker: Maker): string[][] =>
  LOCKS.slice(0, maker.random.between(1, LOCKS.length)).map(keysOf);

/** The locks, then all keys of the next role, and so on. */
const byRole = (locks: readonly string[][], roles: number): string[] =>
  Array.from({ length: roles }, (_, role) => locks.map((keys) => keys[role] ?? '')).flat();

const acquire: Make = (maker) => {
  const entry = maker.random.next() < 0.6 ? moment(maker) : '';
  return made(keysOf(lock(maker)), owner(maker), lease(maker), moment(maker), kept(maker), entry, '');
};

const release: Make = (maker) => {
  const asker = maker.random.next() < 0.4 ? owner(maker) : '';
  const stood = maker.random.next() < 0.5 ? '' : lease(maker);
  const told = [publishing(maker), channel(maker), moment(maker), kept(maker), mostlyZero(maker), stood];
  return made(keysOf(lock(maker)), owner(maker), ...told, asker, lease(maker), '');
};

const renew: Make = (maker) => {
  const of = several(maker);
  const args = of.flatMap(() => [owner(maker), word('0', '1500', '2000')(maker)]);
  return made(
    of.flatMap((keys) => keys.slice(0, 2)),
    kept(maker),
    ...args,
  );
};

const acquireAll: Make = (maker) =>
  made(byRole(several(maker), 2), owner(maker), lease(maker), moment(maker), kept(maker));

const releaseAll: Make = (maker) => {
  const of = several(maker);
  const channels = maker.random.next() < 0.5 ? [] : of.map(() => channel(maker));
  const terms = [publishing(maker), kept(maker), lease(maker), ''];
  return made(byRole(of, 3), owner(maker), ...terms, ...channels);
};

const queueAcquire: Make = (maker) => {
  const [kind, capacity, mode] = maker.random.pick([...kinds, ['', '1', 'x'] as const]);
  const own = maker.random.next() < 0.1 ? owner(maker) : '';
  const waits = [lease(maker), word('0', '1', '1')(maker), moment(maker), own, kept(maker), ''];
  return made(keysOf(lock(maker)), owner(maker), mode, kind, capacity, ...waits);
};

const queueRelease: Make = (maker) => {
  const [kind, capacity, mode] = maker.random.pick(kinds);
  const rest = [mostlyZero(maker), word('0', '80', '1500')(maker), kept(maker), ''];
  return made(keysOf(lock(maker)), owner(maker), mode, kind, capacity, ...rest);
};

const inLane = new Map<string, Make>([
  ['acquire', acquire],
  ['acquire-all', acquireAll],
  ['queue-acquire', queueAcquire],
  ['queue-release', queueRelease],
  ['release', release],
  ['renew', renew],
]);

const lane: Make = (maker) => {
  const items = Array.from({ length: maker.random.between(1, 4) }, () => {
    const [name, make] = maker.random.pick([...inLane]);
    return { name, ...make(maker) };
  });
  const calls = items.map(({ name, keys, args }) => [name, keys.length, args]);
  return made(
    items.flatMap(({ keys }) => keys),
    JSON.stringify(calls),
  );
};

/** All but scan.lua, which names the run of its server: two servers have two. */
const SCRIPTS: Readonly<Record<Exclude<keyof typeof scripts, 'Script' | 'scan'>, Make>> = {
  acquire,
  acquireAll,
  renew,
  release,
  releaseAll,
  queueAcquire,
  queueRelease,
  lane,
  charter: (maker) => {
    const ms = () => String(maker.random.between(0, 5_000));
    const run = word('r1', 'r2', 'r3');
    const fields = {
      run: run(maker),
      quarantined: run(maker),
      allowed: ms(),
      claim: `${run(maker)} ${ms()}`,
      [`seen ${run(maker)}`]: '',
    };
    const given = Object.entries(fields).filter(() => maker.random.next() < 0.4);
    const names = word('', 'a b c', 'd e f')(maker);
    return made(['charter'], word('', 'q1', 'q1', 'q2')(maker), '3', ms(), names, ...given.flat());
  },
  transfer: (maker) => {
    const terms = [lease(maker), moment(maker), kept(maker), publishing(maker), channel(maker), ''];
    return made(keysOf(lock(maker)), owner(maker), owner(maker), ...terms);
  },
  queueTransfer: (maker) => {
    const [kind, capacity, mode] = maker.random.pick(kinds);
    const terms = [mode, kind, capacity, lease(maker), moment(maker), kept(maker), ''];
    return made(keysOf(lock(maker)), owner(maker), owner(maker), ...terms);
  },
  remember: (maker) => made([lock(maker), 'done'], owner(maker), lease(maker)),
  recall: () => made(['done']),
  inspect: (maker) =>
    made(
      keysOf(lock(maker)),
      word('NUMSUB', 'SHARDNUMSUB')(maker),
      channel(maker),
      word('', 'cluster')(maker),
    ),
  subscribers: (maker) => made([], channel(maker), channel(maker)),
  note: (maker) => made(['note'], word('', '0', '500')(maker), 'größer\0 als'),
  trial: (maker) => {
    const messages = [publishing(maker), channel(maker), word('', '1')(maker), channel(maker), ''];
    return made(keysOf(lock(maker)), owner(maker), lease(maker), ...messages);
  },
};

const NAMES = Object.keys(SCRIPTS) as (keyof typeof SCRIPTS)[];
/** These change what the others find. */
const OFTEN = ['acquire', 'release', 'queueAcquire', 'queueRelease', 'lane'] as const;

const bytes = (text: string): string => Buffer.from(text).toString('latin1');

/** A script of the store, with arguments as the store might give it. */
export function ownScript(maker: Maker): Step {
  const { random, at } = maker;
  const name = random.pick<keyof typeof SCRIPTS>(random.next() < 0.6 ? OFTEN : NAMES);
  const { keys, args } = SCRIPTS[name](maker);
  const { sha, source } = scripts[name];
  const call = random.next() < 0.9 ? ['EVALSHA', sha] : ['EVAL', source];
  return { connection: 0, at, command: [...call, String(keys.length), ...keys, ...args].map(bytes) };
}

export const loadAll: readonly (readonly string[])[] = NAMES.map((name) => [
  'SCRIPT',
  'LOAD',
  bytes(scripts[name].source),
]);
