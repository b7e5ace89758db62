import type { Commands } from '../command.js';
import { wrongCount } from '../replies.js';

export const hashes: Commands = {
  HSET: {
    writes: 'more',
    counts: [3, Infinity],
    run: ({ database }, [key = '', ...pairs]) => {
      if (pairs.length % 2 !== 0) throw wrongCount('hset');
      let fields = database.hash(key);
      if (fields === undefined) {
        fields = new Map();
        database.set(key, { type: 'hash', fields });
      }
      const before = fields.size;
      for (let index = 0; index < pairs.length; index += 2) fields.set(pairs[index]!, pairs[index + 1]!);
      return fields.size - before;
    },
  },
  HGET: {
    counts: [2, 2],
    run: ({ database }, [key = '', field = '']) => database.hash(key)?.get(field) ?? null,
  },
  HDEL: {
    writes: 'less',
    counts: [2, Infinity],
    run: ({ database }, [key = '', ...names]) => {
      const fields = database.hash(key);
      if (fields === undefined) return 0;
      const removed = names.filter((name) => fields.delete(name)).length;
      if (fields.size === 0) database.delete(key);
      return removed;
    },
  },
  HEXISTS: {
    counts: [2, 2],
    run: ({ database }, [key = '', field = '']) => (database.hash(key)?.has(field) === true ? 1 : 0),
  },
  HLEN: { counts: [1, 1], run: ({ database }, [key = '']) => database.hash(key)?.size ?? 0 },
  HGETALL: { counts: [1, 1], run: ({ database }, [key = '']) => [...(database.hash(key) ?? [])].flat() },
};
