import { lineAt } from './sources.mjs';
import { commentsOf, keepOnly, proseOf } from './words.mjs';

/** Habits that make readers stumble, and how often they may occur in 1,000 words. */
const HABITS = [
  {
    name: 'a clause without a noun',
    pattern: /\b(?:what (?:is|are|was|were|has|have|it|this|no|they|there)|that which|whoever|whatever)\b/gi,
    limit: 0.5,
    cure: 'name the thing: "the rest of the lease" for "what is left of the lease"',
  },
  {
    name: '"where" for a condition',
    pattern: /\bwhere\b/gi,
    limit: 0.5,
    cure: 'say "if" or "when"; "where" is for places',
  },
  {
    name: 'a literal translation',
    pattern: /\b(?:stands? behind|tells? of|goes around the lock|gives? the lock up)\b/gi,
    limit: 0,
    cure: 'say "waits behind", "reports", "bypasses", "releases"',
  },
];

/** In all pages together, and in all comments of lib together: a few are fine, a habit is not. */
export function* findHabits({ lib, pages, read, tree }) {
  const comments = (path) => keepOnly(tree(path), commentsOf(tree(path)));
  for (const [paths, textOf, kind] of [
    [pages, (path) => proseOf(read(path)), 'pages'],
    [lib, comments, 'comments'],
  ]) {
    const texts = paths.map((path) => ({ path, text: textOf(path) }));
    const words = texts.reduce((sum, { text }) => sum + text.split(/\s+/).length, 0);
    for (const { name, pattern, limit, cure } of HABITS) {
      const found = texts.flatMap(({ path, text }) =>
        [...text.matchAll(pattern)].map(({ 0: phrase, index }) => ({
          path,
          line: lineAt(text, index),
          phrase,
        })),
      );
      if (found.length <= Math.floor((limit * words) / 1_000)) continue;
      for (const { path, line, phrase } of found)
        yield { path, line, rule: `"${phrase}" is ${name}, of which ${kind} have too many`, cure };
    }
  }
}
