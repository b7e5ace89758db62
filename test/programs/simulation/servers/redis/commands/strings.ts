import type { Commands } from '../command.js';
import type { Database } from '../database.js';
import { wholeOf } from '../numbers.js';
import { OK, Refusal, type Reply, syntaxError } from '../replies.js';

const UNITS: Readonly<Record<string, { readonly factor: number; readonly absolute: boolean }>> = {
  EX: { factor: 1_000, absolute: false },
  PX: { factor: 1, absolute: false },
  EXAT: { factor: 1_000, absolute: true },
  PXAT: { factor: 1, absolute: true },
};

interface SetOptions {
  readonly words: ReadonlySet<string>;
  /** The word for the end, and its number. */
  readonly end: readonly [string, string] | undefined;
}

function setOptions(given: readonly string[]): SetOptions {
  const words = new Set<string>();
  let end: SetOptions['end'];
  for (let index = 0; index < given.length; index++) {
    const word = given[index]!.toUpperCase();
    const number = given[index + 1];
    if (
      word in UNITS &&
      number !== undefined &&
      (end === undefined || end[0] === word) &&
      !words.has('KEEPTTL')
    ) {
      end = [word, number];
      index++;
    } else if (['NX', 'XX', 'GET', 'KEEPTTL'].includes(word)) words.add(word);
    else throw syntaxError();
  }
  if ((words.has('NX') && words.has('XX')) || (words.has('KEEPTTL') && end !== undefined))
    throw syntaxError();
  return { words, end };
}

function endOf([word, text]: readonly [string, string], now: number): number {
  const number = wholeOf(text);
  const { factor, absolute } = UNITS[word]!;
  if (number <= 0) throw new Refusal("ERR invalid expire time in 'set' command");
  return number * factor + (absolute ? 0 : now);
}

function set(database: Database, now: number, [key = '', text = '', ...given]: readonly string[]): Reply {
  const { words, end } = setOptions(given);
  const expiresAt = end && endOf(end, now);
  const before = words.has('GET') ? (database.text(key) ?? null) : undefined;
  const present = database.find(key);
  if ((words.has('NX') && present !== undefined) || (words.has('XX') && present === undefined))
    return before ?? null;
  database.set(key, { type: 'string', text }, words.has('KEEPTTL') ? present?.expiresAt : expiresAt);
  return before === undefined ? OK : before;
}

export const strings: Commands = {
  GET: { counts: [1, 1], run: ({ database }, [key = '']) => database.text(key) ?? null },
  SET: {
    writes: 'more',
    counts: [2, Infinity],
    run: (server, args) => set(server.database, server.now(), args),
  },
  MGET: {
    counts: [1, Infinity],
    run: ({ database }, keys) =>
      keys.map((key) => {
        const value = database.find(key)?.value;
        return value?.type === 'string' ? value.text : null;
      }),
  },
};
