import type { Command, Commands } from '../command.js';
import { matcherOf } from '../glob.js';
import { wholeOf } from '../numbers.js';
import { OK, Refusal, type Reply, Status, syntaxError } from '../replies.js';

/** Sets an end. In the past, it is the end now. */
const expiring = (endOf: (number: number, now: number) => number): Command => ({
  writes: 'less',
  counts: [2, 2],
  run: (server, [key = '', text = '']) => {
    const { database } = server;
    const now = server.now();
    const expiresAt = endOf(wholeOf(text), now);
    const entry = database.find(key);
    if (entry === undefined) return 0;
    if (expiresAt <= now) database.delete(key);
    else entry.expiresAt = expiresAt;
    return 1;
  },
});

const removal: Command = {
  writes: 'less',
  counts: [1, Infinity],
  run: ({ database }, keys) => keys.filter((key) => database.delete(key)).length,
};

function scanOptions(given: readonly string[]): (key: string) => boolean {
  let matches: (key: string) => boolean = () => true;
  for (let index = 0; index < given.length; index += 2) {
    const [word = '', value] = given.slice(index, index + 2);
    if (value === undefined) throw syntaxError();
    if (word.toUpperCase() === 'MATCH') matches = matcherOf(value);
    else if (word.toUpperCase() !== 'COUNT') throw syntaxError();
    else if (wholeOf(value) < 1) throw syntaxError();
  }
  return matches;
}

export const keys: Commands = {
  DEL: removal,
  UNLINK: removal,
  EXISTS: {
    counts: [1, Infinity],
    run: ({ database }, names) => names.filter((key) => database.find(key) !== undefined).length,
  },
  TYPE: {
    counts: [1, 1],
    run: ({ database }, [key = '']) => new Status(database.find(key)?.value.type ?? 'none'),
  },
  PTTL: {
    counts: [1, 1],
    run: (server, [key = '']): Reply => {
      const entry = server.database.find(key);
      if (entry === undefined) return -2;
      return entry.expiresAt === undefined ? -1 : entry.expiresAt - server.now();
    },
  },
  PEXPIRE: expiring((number, now) => now + number),
  PEXPIREAT: expiring((number) => number),
  PERSIST: {
    writes: 'less',
    counts: [1, 1],
    run: ({ database }, [key = '']) => {
      const entry = database.find(key);
      if (entry?.expiresAt === undefined) return 0;
      entry.expiresAt = undefined;
      return 1;
    },
  },
  // All at once, which SCAN may do.
  SCAN: {
    counts: [1, Infinity],
    run: ({ database }, [cursor = '', ...given]) => {
      if (!/^\d+$/.test(cursor)) throw new Refusal('ERR invalid cursor');
      return ['0', database.keys().filter(scanOptions(given))];
    },
  },
  FLUSHALL: {
    writes: 'less',
    counts: [0, 1],
    run: ({ database }) => {
      database.clear();
      return OK;
    },
  },
};
