import { posix } from 'node:path';

/** Pages that are read one after the other; docs/design and docs/*.md are looked up. */
const IN_ORDER = /^docs\/(?:guide|troubleshooting)(?:\/|\.md$)/;

const FIRST = 'docs/guide/module.md';

const NEXT = /^Back to \[[^\]]+\]\([^)]+\)\. Next: \[[^\]]+\]\(([^)#]+)\)\.$/m;

/** "Next" leads from the first page of the guide through all others, once each. */
export function* findOutOfOrder({ pages, read }) {
  const left = new Set(pages.filter((path) => IN_ORDER.test(path)));
  if (!left.has(FIRST)) return;
  const cure = 'let "Next" of each page of the guide lead to one page that no other one leads to';
  let path = FIRST;
  while (path !== undefined) {
    left.delete(path);
    const [, target] = NEXT.exec(read(path)) ?? [];
    const next = target && posix.join(posix.dirname(path), target);
    if (next !== undefined && !left.has(next))
      yield { path, line: 3, rule: `leads to ${next} out of order`, cure };
    path = left.has(next) ? next : undefined;
  }
  for (const page of left) yield { path: page, line: 3, rule: 'no page leads here', cure };
}
