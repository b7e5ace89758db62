import type { Commands } from '../command.js';
import type { Database } from '../database.js';
import { digitsOf, floatOf, wholeOf } from '../numbers.js';
import { Refusal, type Reply, syntaxError } from '../replies.js';
import { SortedSet } from '../sorted-set.js';

const ADD_OPTIONS = new Set(['NX', 'XX', 'CH']);

function add(database: Database, [key = '', ...given]: readonly string[]): Reply {
  const options = new Set<string>();
  let first = 0;
  for (; ADD_OPTIONS.has(given[first]?.toUpperCase() ?? ''); first++)
    options.add(given[first]!.toUpperCase());
  const pairs = given.slice(first);
  if (pairs.length === 0 || pairs.length % 2 !== 0) throw syntaxError();
  if (options.has('NX') && options.has('XX'))
    throw new Refusal('ERR XX and NX options at the same time are not compatible');
  const wanted: { score: number; member: string }[] = [];
  for (let index = 0; index < pairs.length; index += 2) {
    const score = floatOf(pairs[index]!);
    if (score === undefined) throw new Refusal('ERR value is not a valid float');
    wanted.push({ score, member: pairs[index + 1]! });
  }
  let set = database.sortedSet(key);
  if (set === undefined) {
    if (options.has('XX')) return 0;
    set = new SortedSet();
    database.set(key, { type: 'zset', set });
  }
  let [added, changed] = [0, 0];
  for (const { score, member } of wanted) {
    const before = set.score(member);
    if (before === undefined ? options.has('XX') : options.has('NX') || before === score) continue;
    if (before === undefined) added++;
    else changed++;
    set.set(member, score);
  }
  return options.has('CH') ? added + changed : added;
}

type Item = ReturnType<SortedSet['all']>[number];

/** One end of a range of scores. */
function bound(text: string): { readonly score: number; readonly open: boolean } {
  const open = text.startsWith('(');
  // Here, and not for a member, Redis takes spaces before a number, and nothing for 0.
  const number = (open ? text.slice(1) : text).trimStart();
  const score = number === '' ? 0 : floatOf(number);
  if (score === undefined) throw new Refusal('ERR min or max is not a float');
  return { score, open };
}

function byScore(least: string, most: string): (items: readonly Item[]) => readonly Item[] {
  const [from, to] = [bound(least), bound(most)];
  return (items) =>
    items.filter(
      ({ score }) =>
        (from.open ? score > from.score : score >= from.score) &&
        (to.open ? score < to.score : score <= to.score),
    );
}

function byRank(start: string, stop: string): (items: readonly Item[]) => readonly Item[] {
  const [first, last] = [wholeOf(start), wholeOf(stop)];
  return (items) => {
    const { length } = items;
    const from = Math.max(0, first < 0 ? first + length : first);
    return items
      .slice(from, (last < 0 ? last + length : last) + 1 || undefined)
      .slice(0, last < -length ? 0 : length);
  };
}

const withScores = (items: readonly Item[], scores: boolean): Reply =>
  items.flatMap(({ member, score }) => (scores ? [member, digitsOf(score)] : [member]));

function range(database: Database, [key = '', start = '', stop = '', ...given]: readonly string[]): Reply {
  const words = new Set<string>();
  for (const word of given.map((one) => one.toUpperCase())) {
    if (!(word === 'WITHSCORES' || (['BYSCORE', 'REV'].includes(word) && !words.has(word))))
      throw syntaxError();
    words.add(word);
  }
  const reversed = words.has('REV');
  const scored = words.has('BYSCORE');
  // With REV and scores, the greatest comes first.
  const select = scored ? byScore(reversed ? stop : start, reversed ? start : stop) : byRank(start, stop);
  const all = database.sortedSet(key)?.all() ?? [];
  const found = scored && reversed ? [...select(all)].reverse() : select(reversed ? [...all].reverse() : all);
  return withScores(found, words.has('WITHSCORES'));
}

function removeBy(
  database: Database,
  key: string,
  select: (items: readonly Item[]) => readonly Item[],
): number {
  const set = database.sortedSet(key);
  if (set === undefined) return 0;
  const found = [...select(set.all())];
  for (const { member } of found) set.delete(member);
  if (set.size === 0) database.delete(key);
  return found.length;
}

export const sortedSets: Commands = {
  ZADD: { writes: 'more', counts: [3, Infinity], run: ({ database }, args) => add(database, args) },
  ZREM: {
    writes: 'less',
    counts: [2, Infinity],
    run: ({ database }, [key = '', ...members]) => {
      const set = database.sortedSet(key);
      if (set === undefined) return 0;
      const removed = members.filter((member) => set.delete(member)).length;
      if (set.size === 0) database.delete(key);
      return removed;
    },
  },
  ZSCORE: {
    counts: [2, 2],
    run: ({ database }, [key = '', member = '']) => {
      const score = database.sortedSet(key)?.score(member);
      return score === undefined ? null : digitsOf(score);
    },
  },
  ZRANK: {
    counts: [2, 2],
    run: ({ database }, [key = '', member = '']) => database.sortedSet(key)?.rank(member) ?? null,
  },
  ZCARD: { counts: [1, 1], run: ({ database }, [key = '']) => database.sortedSet(key)?.size ?? 0 },
  ZRANGE: { counts: [3, Infinity], run: ({ database }, args) => range(database, args) },
  ZREVRANGE: {
    counts: [3, 4],
    run: ({ database }, [key = '', start = '', stop = '', ...scores]) =>
      range(database, [key, start, stop, 'REV', ...scores]),
  },
  ZREMRANGEBYSCORE: {
    writes: 'less',
    counts: [3, 3],
    run: ({ database }, [key = '', least = '', most = '']) => removeBy(database, key, byScore(least, most)),
  },
};
